/* typed.h -- data for the lines of the guides, and what makes them short. */
#ifndef TESTS_CLI_TYPED_H
#define TESTS_CLI_TYPED_H

#include "cli/runs.h"

#define SHORT " trainer.max_steps=1 trainer.eval_every=0 test=false"

/* CIFAR-10's files in data/cifar10 with nothing in them: 30 MB of zeros each are 10,000 black pictures. */
void put_cifar(void);
/* Two classes of 20 pictures of 32x32, one dark and one light. */
void put_pictures(const char *dir);

#endif

/* data_int.h -- what the files of this room share. */
#ifndef CO_DATA_DATA_INT_H
#define CO_DATA_DATA_INT_H

#include "data/data.h"

extern const co_dataset_def digits_def, fake_def, fake_images_def, fake_ratings_def, movielens_def, pairs_def,
    text_def, cifar10_def, cifar100_def, mnist_def;

/* How a set of n samples falls into its splits: one fixed permutation, the same in every run whatever its
 * seed, of which train has the first count[TRAIN] places, val the next, test the rest. */
void split_permute(uint32_t *p, uint32_t n);
uint32_t split_start(const co_dataset *d, co_split s); /* place of the split's sample 0 */

#endif

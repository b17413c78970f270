/* bench.h -- `cohort bench NAME`: the measurements; prints one JSON object a line on standard output. */
#ifndef CO_BENCH_BENCH_H
#define CO_BENCH_BENCH_H

/* argv[0] is "bench", argv[1] the bench's name. Returns the exit status. */
int co_bench_run(int argc, char **argv);

#endif

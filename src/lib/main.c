/* main.c -- the program is the library with nothing added. */
#include "cohort.h"

int main(int argc, char **argv)
{
    return cohort_main(argc, argv, NULL);
}

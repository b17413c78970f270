/* eigen.h -- eigenvalues and eigenvectors of a small symmetric matrix, the same bits on every machine. */
#ifndef CO_BASE_EIGEN_H
#define CO_BASE_EIGEN_H

/* a [n,n] is symmetric and finite; it is destroyed. value [n] falls; row i of vector [n,n] belongs to
 * value[i] and has length 1. Of the two vectors of a line, the one whose largest component is positive is
 * given (of several equally large components, the first decides). */
void co_eigen(double *a, int n, double *value, double *vector);

#endif

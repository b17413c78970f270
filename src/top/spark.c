/* spark.c -- values as a row of small bars, and a share as one bar. */
#include "top/top_int.h"

#include <math.h>

static const char *const heights[2][8] = {{"_", ".", ":", "-", "=", "+", "*", "#"},
                                          {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}};

/* The mean of the finite values that fall on this column; nan: there are none. */
static double value_at(const double *value, int n, int col, int cols)
{
    int from = (int)((int64_t)col * n / cols), to = (int)((int64_t)(col + 1) * n / cols), count = 0;
    double sum = 0;

    to = to > from ? to : from + 1;
    for (int i = from; i < to && i < n; i++)
        if (isfinite(value[i])) {
            sum += value[i];
            count++;
        }
    return count ? sum / count : NAN;
}

static double height_of(double x, bool logarithmic)
{
    return logarithmic ? log(x) : x;
}

void top_spark(co_str *out, const double *value, int n, int cols, bool utf8)
{
    double least = INFINITY, most = -INFINITY;

    cols = cols < n ? cols : n;
    for (int c = 0; c < cols; c++) {
        double x = value_at(value, n, c, cols);
        least = x < least ? x : least;
        most = x > most ? x : most;
    }
    bool logarithmic = least > 0 && most / least > 50;
    double low = height_of(least, logarithmic), high = height_of(most, logarithmic);
    for (int c = 0; c < cols; c++) {
        double x = value_at(value, n, c, cols);
        int height = high > low ? (int)(8 * (height_of(x, logarithmic) - low) / (high - low)) : 0;
        co_str_add(out, isnan(x) ? " " : heights[utf8][height > 7 ? 7 : height < 0 ? 0 : height]);
    }
}

void top_bar(co_str *out, double share, int cols, bool utf8)
{
    int full = isfinite(share) ? (int)(share * cols + 0.5) : 0;

    for (int c = 0; c < cols; c++)
        co_str_add(out, c < full ? (utf8 ? "█" : "#") : (utf8 ? "░" : "."));
}

#include "cli/cli_int.h"
int cmd_test(int c, char **v)
{
    return 0;
}
int cmd_predict(int c, char **v)
{
    return 0;
}
int cmd_ckpt(int c, char **v)
{
    return 0;
}
int cmd_bench(int c, char **v)
{
    return 0;
}
int cmd_ps(int c, char **v)
{
    return 0;
}
int cmd_stop(int c, char **v)
{
    return 0;
}

/* What `cohort launch --hosts` reads: lists of hosts, and the order, a line of JSON for each host. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "ssh/ssh.h"

static co_err parse(co_ssh_host **hosts, int *n, const char *text)
{
    return co_ssh_hostfile(hosts, n, text, strlen(text), "list");
}

TEST(a_hostfile_is_a_host_a_line_with_slots_and_comments)
{
    co_ssh_host *h = NULL;
    int n = 0;

    CHECK_OK(parse(&h, &n, "# all\n  node1 slots=4\r\nme@node2\t# two\n\n10.0.0.3 max_slots=8 slots=1024"));
    CHECK(n == 3, "%d", n);
    CHECK(strcmp(h[0].name, "node1") == 0 && h[0].slots == 4, "%s %d", h[0].name, h[0].slots);
    CHECK(strcmp(h[1].name, "me@node2") == 0 && h[1].slots == 0, "%s %d", h[1].name, h[1].slots);
    CHECK(strcmp(co_ssh_shown(&h[1]), "node2") == 0, "%s", co_ssh_shown(&h[1]));
    CHECK(strcmp(h[2].name, "10.0.0.3") == 0 && h[2].slots == 1024, "%s %d", h[2].name, h[2].slots);
    free(h);
    CHECK_OK(co_ssh_list(&h, &n, "a,fe80::1,c@d"));
    CHECK(n == 3 && strcmp(h[1].name, "fe80::1") == 0, "%d %s", n, h[1].name);
    free(h);
}

TEST(what_is_no_hostfile_is_refused_with_its_line)
{
    static const struct {
        const char *text, *words;
    } row[] = {
        {"", "no host in list"},
        {"# nothing\n \n", "no host in list"},
        {"a\nb slots=0", "list line 2: slots=0: a number from 1 to 1024"},
        {"a slots", "list line 1: slots="},
        {"a slots=4x", "list line 1: slots=4x"},
        {"a\n\nb cores=4", "list line 3: \"cores=4\" after the host"},
        {"a b", "\"b\" after the host"},
        {"-oProxyCommand=x", "is no name of a host"},
        {"me@-l", "is no name of a host"},
        {"@a", "is no name of a host"},
        {"me@", "is no name of a host"},
        {"$(x)", "is no name of a host"},
        {"a:22", "a port belongs in"},
    };
    co_ssh_host *h = NULL;
    int n = 0;

    for (size_t i = 0; i < CO_COUNT(row); i++)
        CHECK_FAILS(parse(&h, &n, row[i].text), CO_EINPUT, row[i].words);
    CHECK_FAILS(co_ssh_hostfile(&h, &n, "a\0b", 3, "list"), CO_EINPUT, "is no name of a host");
    char *many = malloc(3 * 1025 + 1);
    for (int i = 0; i < 1025; i++)
        memcpy(many + 3 * i, "aa\n", 4);
    CHECK_FAILS(parse(&h, &n, many), CO_EINPUT, "list line 1025: more than 1024 hosts");
    memset(many, 'a', 300);
    many[300] = '\0';
    CHECK_FAILS(parse(&h, &n, many), CO_EINPUT, "too long");
    free(many);
    CHECK(!h && !n, "written although refused");
}

static const char *words[] = {"--nnodes=2", "--", "train.py", "-x", "two words\n\"quoted\" \\ '", "", NULL};
static const char *env[] = {"A=1", "PATH_LIKE=a:b=c", NULL};

static co_ssh_order sample(void)
{
    return (co_ssh_order){.host = "b",
                          .rank = 1,
                          .hosts = 2,
                          .also = "10.0.0.1,fd00::1",
                          .cwd = "/tmp/a b",
                          .words = words,
                          .env = env};
}

TEST(an_order_comes_back_as_it_was_told)
{
    co_ssh_order o = sample(), back;
    char *line = NULL;

    CHECK_OK(co_ssh_order_text(&line, &o));
    CHECK(strchr(line, '\n') == line + strlen(line) - 1, "not one line: %s", line);
    CHECK_OK(co_ssh_order_parse(&back, line, strlen(line)));
    CHECK(back.rank == 1 && back.hosts == 2 && strcmp(back.host, "b") == 0, "%s", line);
    CHECK(strcmp(back.cwd, o.cwd) == 0 && strcmp(back.also, o.also) == 0 && !*back.token, "%s", line);
    for (int i = 0; i < 7; i++)
        CHECK(words[i] ? strcmp(words[i], back.words[i]) == 0 : !back.words[i], "word %d", i);
    CHECK(strcmp(back.env[1], env[1]) == 0 && !back.env[2], "env");
    co_ssh_order_fini(&back);
    free(line);
    o.words = (const char *[]){"\xff", NULL};
    CHECK_FAILS(co_ssh_order_text(&line, &o), CO_EINPUT, "word 1");
}

TEST(a_line_that_is_no_order_is_refused_by_what_is_wrong)
{
    static const struct {
        const char *from, *to, *words;
    } row[] = {
        {"{", "", ""},
        {"\"format\":1", "\"format\":2", "format is not"},
        {"\"rank\":1", "\"rank\":2", "rank is not a number from 0 to 1"},
        {"\"rank\":1", "\"rank\":\"1\"", "rank is not"},
        {"\"hosts\":2", "\"hosts\":99999", "hosts is not"},
        {"\"host\":\"b\"", "\"host\":null", "host is missing"},
        {"\"cwd\":\"/tmp", "\"cwd\":\"tmp", "cwd does not begin with /"},
        {"\"token\":\"\"", "\"token\":\"AAAA\"", "token is malformed"},
        {"\"words\":[", "\"words\":[7,", "words has an entry that is not text"},
        {"\"words\":[", "\"other\":[", "words is not a list"},
        {"\"A=1\"", "\"A\"", "not NAME=VALUE"},
        {"\"A=1\"", "\"1A=1\"", "not NAME=VALUE"},
        {"\"A=1\"", "\"=1\"", "not NAME=VALUE"},
    };
    co_ssh_order o = sample(), back;
    char *line = NULL, bad[4096];

    CHECK_OK(co_ssh_order_text(&line, &o));
    for (size_t i = 0; i < CO_COUNT(row); i++) {
        const char *at = strstr(line, row[i].from);
        CHECK(at, "row %zu is not in %s", i, line);
        snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - line), line, row[i].to, at + strlen(row[i].from));
        CHECK_FAILS(co_ssh_order_parse(&back, bad, strlen(bad)), CO_EFORMAT, row[i].words);
    }
    for (size_t cut = 0; cut < strlen(line) - 1; cut++)
        CHECK(co_ssh_order_parse(&back, line, cut) == CO_EFORMAT, "cut at %zu it is taken", cut);
    char *huge = malloc(CO_SSH_ORDER_MOST + 2);
    memset(huge, ' ', CO_SSH_ORDER_MOST + 2);
    CHECK_FAILS(co_ssh_order_parse(&back, huge, CO_SSH_ORDER_MOST + 1), CO_EFORMAT, "longer than");
    free(huge);
    free(line);
}

static co_err order_back_and_forth(void *unused)
{
    co_ssh_order o = sample(), back;
    char *line = NULL;
    co_err err = co_ssh_order_text(&line, &o);

    if (!err)
        err = co_ssh_order_parse(&back, line, strlen(line));
    if (!err)
        co_ssh_order_fini(&back);
    free(line);
    return err;
}

TEST(an_order_survives_every_failing_allocation)
{
    test_each_alloc_fails(order_back_and_forth, NULL);
}

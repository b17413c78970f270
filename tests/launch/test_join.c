/* `cohort host` and `cohort join` on hosts with a network of their own; secrets typed at a terminal, and
 * where there is none. */
#include "launch/pty.h"

#include <stdlib.h>

#include "base/fs.h"
#include "roster/code.h"
#include "net/ns.h"

static pid_t start(const ns_lan *lan, int i, const char *out, const char *line)
{
    ns_enter(lan, i);
    pid_t pid = test_spawn(out, "export OMP_NUM_THREADS=1 TMPDIR=$PWD; %s", line);
    ns_leave(lan);
    return pid;
}

static char *text_of(const char *path)
{
    char *text = NULL;
    size_t len;

    test_may_leak();
    if (co_fs_exists(path))
        CHECK_OK(co_fs_read(&text, &len, path, 1 << 20));
    return text ? text : "";
}

static bool code_is_shown(void *code)
{
    char *at = strstr(text_of("host.out"), "\n    ");

    return at && strchr(at + 5, '\n') && sscanf(at, " %199[^\n]", (char *)code) == 1;
}

/* Starts `cohort host` on host 0; its code. */
static pid_t host(const ns_lan *lan, const char *args, char code[CO_CODE_TEXT])
{
    char line[1024];

    snprintf(line, sizeof line, "exec $COHORT host %s", args);
    pid_t pid = start(lan, 0, "host.out", line);
    test_until(code_is_shown, code, 20, "a code on the host's screen");
    return pid;
}

static void ends(pid_t pid, int want, const char *out, const char *words)
{
    int status = test_wait(pid, 20);

    CHECK(status == want && strstr(text_of(out), words), "%s: status %d, wanted %d and \"%s\":\n%s", out,
          status, want, words, text_of(out));
}

TEST(three_hosts_run_a_program_together_and_nobody_typed_an_address)
{
    ns_lan lan = ns_open(3);
    char code[CO_CODE_TEXT], line[1024];
    pid_t pid[3];

    setenv("OPTS", "lr=1,bs=2", 1); /* a comma in the value must not make it two variables */
    pid[0] = host(
        &lan,
        "--nnodes=3 --nproc-per-node=2 --log-dir=logs --rdzv-id=talk --env DEVICES=0,1 --env SIZE=9 --env "
        "OPTS -- sh -c"
        " 'echo place $RANK/$WORLD_SIZE $MASTER_ADDR $TORCHELASTIC_RUN_ID $PWD \"$1\" $DEVICES $SIZE $OPTS; "
        "env' sh"
        " 'two words'",
        code);
    snprintf(line, sizeof line, "cd / && unset OPTS; COHORT_JOIN=%s exec $COHORT join", code);
    pid[1] = start(&lan, 1, "one.out", line);
    snprintf(line, sizeof line, "unset OPTS; echo %s | $COHORT join --nproc-per-node=1 --log-dir=elsewhere",
             code);
    pid[2] = start(&lan, 2, "two.out", line);
    ends(pid[0], 0, "host.out", "place 0/5 10.77.0.1 talk /");
    ends(pid[1], 0, "one.out", "with host");
    ends(pid[2], 0, "two.out", "(1 worker) as part of job talk with host");
    test_note("%.120s", strstr(text_of("two.out"), "will run"));
    CHECK(strstr(text_of("two.out"), " two words"), "%s", text_of("two.out"));
    test_run r = test_sh("$COHORT logs logs elsewhere | grep -c \"place ./5 10.77.0.1 talk $PWD two words "
                         "0,1 9 lr=1,bs=2\"; ls "
                         "-d logs/talk_* elsewhere/talk_* | wc -l");
    CHECK(strcmp(r.out, "5\n3\n") == 0, "places, folders: %s", r.out);
    r = test_sh("grep -rqi -e %.23s -e COHORT_JOIN -e COHORT_TOKEN logs elsewhere one.out", code);
    CHECK(r.status == 1, "the code, or a name of a secret, is in a worker's environment or a log file");
}

/* The joiner cannot reach the host's likeliest addresses: a network with the same numbers swallows the
 * packets. */
TEST(addresses_that_do_not_answer_are_passed_over_within_three_seconds)
{
    ns_lan lan = ns_open(2);
    char code[CO_CODE_TEXT], line[512];
    co_code c;

    ns_sh(lan.host[0],
          "ip link add wan0 type veth peer name wan1 && ip link set wan0 up && ip link set wan1 up &&"
          " ip addr add 198.51.100.7/24 dev wan0 && ip addr add 203.0.113.7/24 dev wan0 &&"
          " ip route add default via 198.51.100.1");
    ns_sh(lan.host[1],
          "ip link add sink0 type veth peer name sink1 && ip link set sink0 up && ip link set sink1 up &&"
          " ip addr add 198.51.100.8/24 dev sink0 && ip addr add 203.0.113.8/24 dev sink0");
    pid_t a = host(&lan, "-- sh -c 'echo at $MASTER_ADDR'", code);
    CHECK_OK(co_code_parse(&c, code));
    CHECK(c.n == 3 && ntohl(c.at[0].v4.sin_addr.s_addr) == 0xc6336407, "%d addresses", c.n);
    double before = co_now_s();
    snprintf(line, sizeof line, "COHORT_JOIN=%s exec $COHORT join", code);
    pid_t b = start(&lan, 1, "one.out", line);
    ends(b, 0, "one.out", "at 10.77.0.1");
    test_note("joined and done in %.2f s, past two dead addresses", co_now_s() - before);
    CHECK(co_now_s() - before < 3, "took %g s", co_now_s() - before);
    ends(a, 0, "host.out", "at 10.77.0.1");
}

TEST(a_code_is_asked_for_at_the_terminal_and_not_shown)
{
    ns_lan lan = ns_open(2);
    char code[CO_CODE_TEXT], bad[CO_CODE_TEXT + 2], line[CO_CODE_TEXT + 2];
    static pty p;

    pid_t a = host(&lan, "-- sh -c 'echo hello $RANK'", code);
    snprintf(line, sizeof line, "%s\n", code);
    snprintf(bad, sizeof bad, "%s", line);
    bad[13] = bad[13] == '7' ? '8' : '7'; /* a letter of the third group */
    ns_enter(&lan, 1);
    pty_open(&p, "$COHORT join; stty -a | grep -o '[-]*echo '");
    ns_leave(&lan);
    pty_expect(&p, "Code of the job");
    pty_type(&p, bad);
    pty_expect(&p, "mistake in group 3");
    pty_expect(&p, "Code of the job");
    pty_type(&p, line);
    pty_expect(&p, "will run: sh -c echo hello $RANK (1 worker) as part of job");
    pty_expect(&p, "hello 1");
    pty_end(&p);
    CHECK(!strstr(p.seen, code) && !strstr(p.seen, code + 6), "the code was shown:\n%s", p.seen);
    CHECK(strstr(p.seen, "\necho "), "the terminal does not echo any more:\n%s", p.seen);
    ends(a, 0, "host.out", "hello 0");
}

TEST(a_token_is_asked_for_three_times_and_not_shown)
{
    static const char wrong[] = "7K2M-9QXD-0000-1111-2222-3333-4444";
    ns_lan lan = ns_open(2);
    char typed[64];
    static pty p;

    snprintf(typed, sizeof typed, "%s\n", wrong);
    ns_enter(&lan, 1);
    pty_open(&p, "$COHORT launch --nnodes=2 --rdzv-endpoint=10.77.0.1:29400 --no-python true");
    ns_leave(&lan);
    for (int i = 0; i < 3; i++) {
        pty_expect(&p, "Token of the job at 10.77.0.1:29400");
        pty_type(&p, typed);
        pty_expect(&p, "the token is mistyped");
    }
    pty_expect(&p, "put COHORT_TOKEN=... before");
    CHECK(pty_end(&p) == 2, "status:\n%s", p.seen);
    CHECK(!strstr(p.seen, "7K2M"), "the token was shown:\n%s", p.seen);
}

TEST(an_interrupted_prompt_leaves_the_terminal_as_it_was)
{
    static pty p;

    pty_open(&p, "trap : INT; $COHORT join; echo status $?; stty -a | grep -o '[-]*echo '");
    pty_expect(&p, "Code of the job");
    pty_type(&p, "\x03");
    pty_expect(&p, "status 130");
    pty_end(&p);
    CHECK(strstr(p.seen, "\necho "), "the terminal does not echo any more:\n%s", p.seen);
}

TEST(without_secret_and_terminal_both_are_refused_at_once_with_the_line_to_run)
{
    ns_lan lan = ns_open(2);
    static const struct {
        const char *line, *words;
    } cases[] = {
        {"setsid $COHORT join </dev/null", "put COHORT_JOIN=CODE before it"},
        {"setsid $COHORT launch --nnodes=2 --rdzv-endpoint=10.77.0.1:29400 --no-python true </dev/null",
         "put COHORT_TOKEN=... before this command"}};

    for (size_t i = 0; i < CO_COUNT(cases); i++) {
        double before = co_now_s();
        ends(start(&lan, 1, "out", cases[i].line), 2, "out", cases[i].words);
        CHECK(co_now_s() - before < 1, "took %g s", co_now_s() - before);
    }
}

static void refused(const char *line, const char *words)
{
    test_run r = test_sh("%s </dev/null", line);

    CHECK(r.status == 2 && strstr(r.out, words), "%s: status %d: %s", line, r.status, r.out);
    free(r.out);
}

TEST(what_is_not_for_a_line_of_join_or_host_is_refused)
{
    refused("$COHORT join AAM05-BG00C-081F0", "other users of this machine could read it");
    refused("$COHORT join --nnodes=3", "only the first host may give --nnodes");
    refused("$COHORT join --nproc-per-nod", "--nproc-per-node");
    refused("$COHORT join --epochs=3", "join: no flag --epochs=3");
    refused("COHORT_JOIN=AAM05 $COHORT join", "COHORT_JOIN: the code is cut off");
    refused("$COHORT host", "host: no program to run: cohort host");
    refused("$COHORT host --nnodes=1 true", "`cohort launch` runs on one host");
    refused("$COHORT host --ssh 'ssh -p 1' true", "--ssh does not go with");
    refused("$COHORT host --standalone true", "--standalone does not go with");
    refused("$COHORT host --rdzv-endpoint=10.9.8.7x:99999 true", "the port is");
}

static bool host_says(void *words)
{
    return strstr(text_of("host.out"), words) != NULL;
}

TEST(a_job_without_token_has_a_short_code_and_a_host_may_come_late)
{
    ns_lan lan = ns_open(2);
    char code[CO_CODE_TEXT], line[512];
    co_code c;

    pid_t a = host(&lan,
                   "--insecure --nnodes=1:2 --rdzv-conf last_call_timeout=0.2 -- sh -c"
                   " 'echo one of $WORLD_SIZE; [ $WORLD_SIZE = 2 ] || exec sleep 50'",
                   code);
    CHECK_OK(co_code_parse(&c, code));
    CHECK(!c.has_token && strlen(code) == 21, "%s", code);
    test_until(host_says, "one of 1", 20, "the host to begin alone");
    snprintf(line, sizeof line, "COHORT_JOIN=%s exec $COHORT join", code);
    ends(start(&lan, 1, "no.out", line), 2, "no.out", "`cohort join --insecure` accepts that");
    strcat(line, " --insecure");
    ends(start(&lan, 1, "one.out", line), 0, "one.out", "one of 2");
    ends(a, 0, "host.out", "one of 2");
}

TEST(a_program_that_is_absent_on_a_host_is_said_on_both)
{
    ns_lan lan = ns_open(2);
    char code[CO_CODE_TEXT], line[512];
    pid_t a;

    CHECK(test_sh("mkdir a && printf '#!/bin/sh\\n' > a/here-only && chmod +x a/here-only").status == 0,
          "a program");
    snprintf(line, sizeof line, "cd a && exec $COHORT host ./here-only");
    a = start(&lan, 0, "host.out", line);
    test_until(code_is_shown, code, 20, "a code");
    CHECK(test_sh("mv a b").status == 0, "mv");
    snprintf(line, sizeof line, "COHORT_JOIN=%s exec $COHORT join", code);
    ends(start(&lan, 1, "one.out", line), 2, "one.out", "which does not exist here: running in");
    CHECK(strstr(text_of("one.out"), "no program ./here-only in"), "%s", text_of("one.out"));
    test_until(host_says, "(10.77.0.2) does not join: launch: no program ./here-only in", 5,
               "a line on the host");
    kill(a, SIGTERM);
    ends(a, 75, "host.out", "");
}

TEST(a_code_of_a_job_that_is_over_is_said_within_seconds)
{
    ns_lan lan = ns_open(2);
    char code[CO_CODE_TEXT], line[512];

    pid_t a = host(&lan, "-- true", code);
    kill(a, SIGKILL);
    test_wait(a, 20);
    double before = co_now_s();
    snprintf(line, sizeof line, "COHORT_JOIN=%s exec $COHORT join", code);
    ends(start(&lan, 1, "one.out", line), 1, "one.out", "The job is over, or the code is an old one");
    test_note("refused after %.1f s", co_now_s() - before);
    CHECK(co_now_s() - before < 8, "took %g s", co_now_s() - before);
}

/* A host that knows the token and lies. */
static void told(const char *plan, const char *words, const char *command)
{
    co_terms terms = {
        .run_id = "x", .min_hosts = 2, .max_hosts = 2, .nproc = 1, .host_rank = -1, .version = "1"};
    co_meet where = {.endpoint = ":0", .plan = plan};
    char text[CO_CODE_TEXT];
    co_roster *r;
    co_code code;

    CHECK_OK(co_meet_listen(&where));
    CHECK_OK(co_code_of(&code, &where));
    co_code_text(text, &code);
    CHECK_OK(co_roster_open(&r, &terms, &where));
    setenv("COHORT_JOIN", text, 1);
    refused(command, words);
    unsetenv("COHORT_JOIN");
    co_roster_close(r);
}

TEST(what_a_host_says_is_checked_before_it_is_run)
{
    static char large[3 * 5000 + 100];
    char *at = large + sprintf(large, "{\"words\": [\"\"");

    for (int i = 0; i < 5000; i++)
        at += sprintf(at, ",\"\"");
    sprintf(at, "]}");
    told("{}", "a command of 0 words, not 1 to", "$COHORT join");
    told("{\"words\": 3}", "a command of 0 words, not 1 to", "$COHORT join");
    told("{\"words\": [\"--\", 3]}", "words that are not text", "$COHORT join");
    told(large, "a command of 5001 words, not 1 to", "$COHORT join");
    told("{\"words\": [\"--\", \"true\"], \"words\": []}", "words", "$COHORT join");
    told("[1]", "no object", "$COHORT join");
    told("{\"words\": [\"--rdzv-endpoint=10.0.0.1:1\", \"--\", \"true\"]}",
         "says --rdzv-endpoint=10.0.0.1:1, which this version", "$COHORT join");
    told("{\"words\": [\"--insecure\", \"--\", \"true\"]}", "which this version", "$COHORT join");
    told("{\"words\": [\"true\"]}", "says true, which this version", "$COHORT join");
    told("{\"words\": [\"--nnodes=2\"]}", "no program to run", "$COHORT join");
    told(NULL, "the job was not started by `cohort host`", "$COHORT join");
}

/* The program is our own training: the code is all that the other host needs, and it may have another number
 * of ranks. */
TEST(hosts_that_join_with_a_code_train_together)
{
    ns_lan lan = ns_open(2);
    char code[CO_CODE_TEXT], line[1024], hash[17];
    pid_t pid[2];

    pid[0] = host(&lan, "-- train data=digits trainer.max_steps=5 data.batch_size=64 run.dir=both", code);
    snprintf(line, sizeof line, "COHORT_JOIN=%s exec $COHORT join --nproc-per-node=3", code);
    pid[1] = start(&lan, 1, "one.out", line);
    ends(pid[0], 0, "host.out", "view 1: 2 hosts");
    ends(pid[1], 0, "one.out", "will run: train data=digits trainer.max_steps=5");
    const char *sha = strstr(text_of("host.out"), "weights_sha256 ");
    CHECK(sha, "%s", text_of("host.out"));
    snprintf(hash, sizeof hash, "%.16s", sha + 15);
    test_run r = test_sh("$COHORT train data=digits trainer.max_steps=5 data.batch_size=64 run.dir=alone");
    CHECK(r.status == 0 && strstr(r.out, hash) && strstr(text_of("one.out"), hash), "not %s: %s\n%s", hash,
          r.out, text_of("one.out"));
    free(r.out);
}

TEST(a_training_with_a_mistake_shows_no_code)
{
    test_run r = test_sh("$COHORT host -- train dta=digits");

    CHECK(r.status == 2 && strstr(r.out, "unknown key \"dta\"") && !strstr(r.out, "cohort join"), "%d: %s",
          r.status, r.out);
    free(r.out);
}

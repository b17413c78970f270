/* The library as a user gets it: installed, found by pkg-config, linked into the user's own programs. */
#include <string.h>
#include <unistd.h>

#include "cli/runs.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static void needs(const char *program)
{
    test_run r = test_sh("command -v %s", program);

    if (r.status != 0)
        test_skip("%s is not installed", program);
    free(r.out);
}

/* `make install` of what this variant built, into ./stage. */
static void stage(void)
{
    char b[512];
    const char *repo = test_repo("."), *program = test_cohort();

    if (SANITIZED)
        test_skip("the archive is installed without sanitizers");
    needs("pkg-config");
    test_run self = test_sh("realpath --relative-to=%s $(dirname $(readlink /proc/%d/exe))", repo, getpid());
    snprintf(b, sizeof b, "%.*s", (int)strcspn(self.out, "\n"), self.out);
    free(self.out);
    const char *v = strstr(b, "clang") ? "clang" : "release";
    test_run r = test_sh("here=$PWD; cd %s && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make install V=%s B=%s "
                         "COHORT=$(realpath --relative-to=. %s) PREFIX=/usr DESTDIR=$here/stage",
                         repo, v, b, program);
    CHECK(r.status == 0, "make install: %d\n%s", r.status, r.out);
    free(r.out);
}

/* A command in a shell that finds the staged library as an installed one. */
static test_run with_stage(const char *line)
{
    return test_sh("export PKG_CONFIG_SYSROOT_DIR=$PWD/stage PKG_CONFIG_LIBDIR=$PWD/stage/usr/lib/pkgconfig "
                   "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 XDG_RUNTIME_DIR=$PWD; %s",
                   line);
}

static void staged(const char *line)
{
    test_run r = with_stage(line);

    CHECK(r.status == 0, "%s: exit status %d\n%s", line, r.status, r.out);
    free(r.out);
}

static double number_of(const char *dir, const char *group, const char *key)
{
    double x = -1;
    json_t *v = json_of("%s/summary.json", dir), *in = json_object_get(v, group);

    CHECK(co_json_f64(in, key, &x), "%s: no %s", dir, key);
    json_decref(v);
    return x;
}

#define OWN "ex/own_model train model=residual data=spirals trainer.max_epochs=4 model.width=32 "

TEST(an_installed_library_makes_a_program_that_trains_its_own_model_to_one_hash)
{
    char one[65], other[65];

    stage();
    staged("cp -r $REPO/examples ex && make -C ex CFLAGS='-O1 -Wall -Wextra -Werror'");
    staged(OWN "run.dir=first trainer.max_epochs=1 trainer.devices=1");
    staged(OWN "run.dir=one trainer.devices=1");
    CHECK(number_of("one", "metrics", "val/acc") > number_of("first", "metrics", "val/acc") + 0.1,
          "accuracy after 4 epochs: %g, after 1: %g", number_of("one", "metrics", "val/acc"),
          number_of("first", "metrics", "val/acc"));
    sha_of_run(one, "one");
    staged(OWN "run.dir=two trainer.devices=2");
    sha_of_run(other, "two");
    CHECK(strcmp(one, other) == 0, "1 rank %s, 2 ranks %s", one, other);
    staged(OWN "run.dir=killed trainer.devices=2 fault.phase=random fault.kills=4 fault.mean_ms=10");
    sha_of_run(other, "killed");
    CHECK(strcmp(one, other) == 0, "alone %s, killed %s", one, other);
    json_t *s = json_of("%s/summary.json", "killed");
    CHECK(number_in(s, "recoveries") > 0, "no rank was killed");
    json_decref(s);

    test_run r = with_stage("ex/own_model train --help model");
    CHECK(r.status == 0 && strstr(r.out, "model.activation") && strstr(r.out, "(relu|gelu)"), "%s", r.out);
    free(r.out);
    r = with_stage("ex/own_model train model=residual data=spirals model.with=3 run.dir=no");
    CHECK(r.status == 2 && strstr(r.out, "model.width"), "%d %s", r.status, r.out);
    free(r.out);
    r = with_stage("ex/own_model train -m model=residual data=spirals trainer.max_epochs=1 seed=1,2 --json");
    CHECK(r.status == 0 && strstr(r.out, "\"job\":1"), "%d %s", r.status, r.out);
    free(r.out);
}

#define READER "ex/attention train model=reader data=recall optim.lr=0.01 "

TEST(an_example_with_attention_of_its_own_learns_and_has_one_hash)
{
    char one[65], other[65];

    stage();
    staged("cp -r $REPO/examples ex && make -C ex attention CFLAGS='-O1 -Wall -Wextra -Werror'");
    staged(READER "run.dir=one trainer.devices=1 trainer.max_epochs=6");
    CHECK(number_of("one", "metrics", "val/acc") > 0.8, "accuracy %g", number_of("one", "metrics", "val/acc"));
    sha_of_run(one, "one");
    staged(READER "run.dir=two trainer.devices=2 trainer.max_epochs=6");
    sha_of_run(other, "two");
    CHECK(strcmp(one, other) == 0, "1 rank %s, 2 ranks %s", one, other);
}

TEST(an_installed_library_trains_from_inside_a_program_and_is_taken_away_again)
{
    char trained[65] = "", looked[65] = "";

    stage();
    staged("cp -r $REPO/examples ex && make -C ex embed");
    test_run r = with_stage("ex/embed");
    CHECK(r.status == 0, "%d %s", r.status, r.out);
    const char *at = strstr(r.out, "stopped after ");
    CHECK(at && sscanf(strstr(at, "weights "), "weights %64s", trained) == 1, "%s", r.out);
    at = strstr(r.out, "test: ");
    CHECK(at && sscanf(strstr(at, "weights "), "weights %64s", looked) == 1, "%s", r.out);
    CHECK(strcmp(trained, looked) == 0, "trained %s, evaluated %s", trained, looked);
    CHECK(strstr(r.out, "digit 9 looks like a "), "%s", r.out);
    CHECK(!strstr(r.out, "weights_sha256"), "the library prints:\n%s", r.out);
    free(r.out);

    r = test_sh("mkdir away && mv stage/usr away && ln -s ../away/usr stage/usr && cd away && "
                "p=$(usr/bin/cohort train "
                "data=imagefolder 2>&1 | grep -o '[^ (]*data[.]md') && test -r $p && echo $p");
    CHECK(r.status == 0 && strstr(r.out, "/usr/share/doc/cohort/data.md"), "%d %s", r.status, r.out);
    free(r.out);
    r = test_sh("cd %s && env -u MAKEFLAGS make uninstall PREFIX=/usr DESTDIR=$OLDPWD/stage >/dev/null; cd - "
                ">/dev/null; find stage -type f",
                test_repo("."));
    CHECK(r.out[0] == '\0', "left behind:\n%s", r.out);
    free(r.out);
}

TEST(only_names_of_cohort_can_be_seen_in_the_archive)
{
    stage();
    test_run r =
        test_sh("nm -g --defined-only stage/usr/lib/libcohort.a | awk 'NF == 3 {print $3}' | sort > names; "
                "grep -v '^cohort_' names; grep -c '^cohort_' names >&2");
    int n = atoi(r.out);
    CHECK(n > 30, "strangers among the names, or too few:\n%s", r.out);
    free(r.out);
    /* Each is declared in the header, and each function declared there is in the archive. */
    r = test_sh(
        "for n in $(cat names); do grep -qw $n stage/usr/include/cohort.h || echo $n is not declared; done; "
        "grep -o '\\bcohort_[a-z_]*(' stage/usr/include/cohort.h | tr -d '(' | sort -u | "
        "while read n; do grep -qx $n names || echo $n is not there; done");
    CHECK(r.out[0] == '\0', "%s", r.out);
    free(r.out);
}

TEST(the_header_stands_alone_in_c11_and_in_cpp)
{
    const char *include = test_repo("include");
    test_run r = test_sh("printf '#include <cohort.h>\\ncohort_shape s(void);\\ncohort_shape s(void)\\n"
                         "{return COHORT_SHAPE(1, 2);}\\n' > a.c && "
                         "cc -std=c11 -pedantic -Wall -Wextra -Werror -I%s -fsyntax-only a.c",
                         include);
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    needs("g++");
    r = test_sh(
        "cp a.c a.cpp; for s in 11 20; do g++ -std=c++$s -pedantic -Wall -Wextra -Werror -I%s -fsyntax-only "
        "a.cpp || exit 1; done",
        include);
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}

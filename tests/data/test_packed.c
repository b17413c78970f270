#include "data/packs.h"

#include "data/images_int.h"

enum { LEN = 3000 };

static void make_bytes(uint8_t bytes[LEN])
{
    uint64_t state = 7;

    for (int i = 0; i < LEN; i++) /* neither all noise nor all the same */
        bytes[i] = i % 3 ? (uint8_t)(i / 100) : (uint8_t)test_u32(&state);
}

/* `name` says how the bytes are packed. Reads LEN bytes and the end. */
static co_err read_back(const uint8_t *in, size_t len, const char *name, uint8_t got[LEN])
{
    packed *p;

    CO_TRY(packed_of_bytes(&p, in, len, name));
    co_err err = packed_exactly(p, got, LEN, 0);
    packed_close(p);
    return err;
}

static const struct {
    const char *name;
    uint8_t *(*pack)(const void *, size_t, size_t *);
} kinds[] = {{"f.xz", pack_xz}, {"f.gz", pack_gz}};

TEST(packed_files_come_back_whole_and_may_be_several_in_one)
{
    uint8_t bytes[LEN], got[LEN];

    make_bytes(bytes);
    for (size_t k = 0; k < CO_COUNT(kinds); k++) {
        size_t a_len, b_len;
        uint8_t *a = kinds[k].pack(bytes, 1000, &a_len), *b = kinds[k].pack(bytes + 1000, LEN - 1000, &b_len);
        uint8_t *both = malloc(a_len + b_len);
        memcpy(both, a, a_len);
        memcpy(both + a_len, b, b_len);
        memset(got, 0, LEN);
        CHECK_OK(read_back(both, a_len + b_len, kinds[k].name, got));
        CHECK(memcmp(got, bytes, LEN) == 0, "%s differs", kinds[k].name);
        put_file(kinds[k].name, both, a_len + b_len);
        packed *p;
        CHECK_OK(packed_open(&p, kinds[k].name));
        memset(got, 0, LEN);
        for (size_t i = 0, n; i < LEN; i += 7) { /* in odd pieces */
            CHECK_OK(packed_read(p, got + i, LEN - i < 7 ? LEN - i : 7, &n));
            CHECK(n == (LEN - i < 7 ? LEN - i : 7), "%zu at %zu", n, i);
        }
        CHECK(memcmp(got, bytes, LEN) == 0, "%s differs", kinds[k].name);
        packed_close(p);
        free(a);
        free(b);
        free(both);
    }
}

TEST(a_packed_file_cut_at_any_byte_or_with_bytes_after_it_is_refused)
{
    uint8_t bytes[LEN], got[LEN];

    make_bytes(bytes);
    for (size_t k = 0; k < CO_COUNT(kinds); k++) {
        size_t len;
        uint8_t *small = kinds[k].pack(bytes, LEN, &len), *longer = malloc(len + 16);
        for (size_t cut = 0; cut < len; cut++) {
            uint8_t *part = malloc(cut ? cut : 1); /* so that reading past it shows */
            memcpy(part, small, cut);
            CHECK_FAILS(read_back(part, cut, kinds[k].name, got), CO_EINPUT, "is cut short");
            free(part);
        }
        memcpy(longer, small, len);
        memcpy(longer + len, "garbage, garbage", 16);
        CHECK_FAILS(read_back(longer, len + 16, kinds[k].name, got), CO_EINPUT, "or is damaged");
        free(longer);
        free(small);
    }
}

/* Whatever bit is turned, the bytes are right or refused. */
TEST(a_damaged_packed_file_never_gives_wrong_bytes)
{
    uint8_t bytes[LEN], got[LEN];

    make_bytes(bytes);
    for (size_t k = 0; k < CO_COUNT(kinds); k++) {
        size_t len, refused = 0;
        uint8_t *small = kinds[k].pack(bytes, LEN, &len);
        for (size_t i = 0; i < len; i++) {
            small[i] ^= (uint8_t)(1 << i % 8);
            if (read_back(small, len, kinds[k].name, got))
                refused++;
            else
                CHECK(memcmp(got, bytes, LEN) == 0, "%s, byte %zu", kinds[k].name, i);
            small[i] ^= (uint8_t)(1 << i % 8);
        }
        CHECK(refused > len - 12, "%s: %zu of %zu refused", kinds[k].name, refused, len);
        free(small);
    }
}

TEST(what_is_not_packed_is_refused_by_its_kind)
{
    uint8_t got[LEN];

    CHECK_FAILS(read_back((const uint8_t *)"no such thing", 13, "a.xz", got), CO_EINPUT,
                "a.xz is not an xz file, or is damaged");
    CHECK_FAILS(read_back((const uint8_t *)"no such thing", 13, "a.gz", got), CO_EINPUT,
                "a.gz is not a gzip file, or is damaged");
}

TEST(a_size_that_is_not_the_right_one_is_told_with_both)
{
    static uint8_t much[3 << 20];
    uint8_t got[LEN];
    size_t len;
    uint8_t *small = pack_xz(much, LEN - 1, &len);

    CHECK_FAILS(read_back(much, LEN - 1, "a", got), CO_EINPUT,
                "a: 2,999 bytes, not 3,000: is the download complete?");
    CHECK_FAILS(read_back(much, LEN + 1, "a", got), CO_EINPUT,
                "a: 3,001 bytes, not 3,000: is it the right file?");
    CHECK_FAILS(read_back(much, sizeof much, "a", got), CO_EINPUT, "a: more than 1,0");
    CHECK_FAILS(read_back(small, len, "a.xz", got), CO_EINPUT, "a.xz: 2,999 bytes unpacked, not 3,000");
    free(small);
}

TEST(numbers_have_commas)
{
    char out[32];

    CHECK(strcmp(with_commas(out, 0), "0") == 0, "%s", out);
    CHECK(strcmp(with_commas(out, 999), "999") == 0, "%s", out);
    CHECK(strcmp(with_commas(out, 30730000), "30,730,000") == 0, "%s", out);
    CHECK(strcmp(with_commas(out, UINT64_MAX), "18,446,744,073,709,551,615") == 0, "%s", out);
}

static co_err open_and_read(void *name)
{
    uint8_t got[LEN];
    packed *p;

    CO_TRY(packed_open(&p, name));
    co_err err = packed_exactly(p, got, LEN, 0);
    packed_close(p);
    return err;
}

TEST(packed_files_say_so_when_memory_is_out)
{
    uint8_t bytes[LEN];

    make_bytes(bytes);
    for (size_t k = 0; k < CO_COUNT(kinds); k++) {
        size_t len;
        uint8_t *small = kinds[k].pack(bytes, LEN, &len);
        put_file(kinds[k].name, small, len);
        free(small);
        test_each_alloc_fails(open_and_read, (void *)(uintptr_t)kinds[k].name);
    }
}

enum { FILES = 9 };

TEST(several_files_are_unpacked_at_once_and_the_first_failure_is_told_tsan)
{
    static uint8_t got[FILES][LEN];
    static struct unpack_job jobs[FILES];
    uint8_t bytes[LEN];

    make_bytes(bytes);
    for (int i = 0; i < FILES; i++) {
        size_t len;
        bytes[0] = (uint8_t)i;
        uint8_t *small = pack_xz(bytes, LEN, &len);
        jobs[i] = (struct unpack_job){.to = got[i], .want = LEN};
        snprintf(jobs[i].path, sizeof jobs[i].path, "%d.xz", i);
        put_file(jobs[i].path, small, len);
        free(small);
    }
    CHECK_OK(unpack_all(jobs, FILES));
    for (int i = 0; i < FILES; i++)
        CHECK(got[i][0] == i && memcmp(got[i] + 1, bytes + 1, LEN - 1) == 0, "file %d", i);
    CHECK(truncate("7.xz", 40) == 0 && truncate("4.xz", 50) == 0, "%m");
    CHECK_FAILS(unpack_all(jobs, FILES), CO_EINPUT, "4.xz is cut short");
}

/* --- tar ------------------------------------------------------------------------------------------------ */

/* What is in the archive, as "name size;", and the sum of its bytes. */
static co_err list(const void *bytes, size_t len, char out[256], unsigned *sum)
{
    packed *p;
    bool more = true;
    size_t at = 0;

    CO_TRY(packed_of_bytes(&p, bytes, len, "a.tar"));
    tar t = {.in = p};
    co_err err = CO_OK;
    while (!err && more && at < 200) {
        err = tar_next(&t, &more);
        if (err || !more)
            break;
        at += (size_t)snprintf(out + at, 256 - at, "%s %llu;", t.name, (unsigned long long)t.size);
        if (t.size < LEN && t.size % 2) { /* some are read, others passed over */
            uint8_t got[LEN];
            err = tar_read(&t, got);
            for (size_t i = 0; i < t.size && !err; i++)
                *sum += got[i];
        }
    }
    packed_close(p);
    return err;
}

static char *make_tar(const char *flags, size_t *len)
{
    test_run r =
        test_sh("mkdir -p d/e && printf abc >d/three && printf '%%0600d' 0 >d/e/many && : >d/empty &&"
                " ln -sf three d/link && tar --sort=name %s -cf a.tar d",
                flags);
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    FILE *f = fopen("a.tar", "re");
    char *bytes = malloc(1 << 20);
    *len = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    return bytes;
}

TEST(regular_files_of_a_tar_archive_are_found_with_their_bytes)
{
    static const char *const forms[] = {"--format=ustar", "--format=gnu", "--format=pax"};

    for (size_t i = 0; i < CO_COUNT(forms); i++) {
        size_t len;
        char *bytes = make_tar(forms[i], &len), out[256] = "";
        unsigned sum = 0;
        CHECK_OK(list(bytes, len, out, &sum));
        CHECK(strcmp(out, "d/e/many 600;d/empty 0;d/three 3;") == 0, "%s: %s", forms[i], out);
        CHECK(sum == 'a' + 'b' + 'c', "%s: %u", forms[i], sum);
        free(bytes);
    }
}

TEST(a_tar_archive_cut_or_with_a_damaged_head_is_refused)
{
    size_t len;
    char *bytes = make_tar("--format=ustar", &len), out[256];
    unsigned sum = 0;

    for (size_t cut = 0; cut < 4000; cut += 97)
        CHECK_FAILS(list(bytes, cut, out, &sum), CO_EINPUT, "a.tar: it ends in the middle");
    for (int i = 0; i < 512; i++) {
        bytes[i] ^= 1;
        CHECK(list(bytes, len, out, &sum) == CO_EINPUT || (i >= 148 && i < 156), "byte %d", i);
        bytes[i] ^= 1;
    }
    free(bytes);
}

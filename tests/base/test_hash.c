#include "harness.h"

#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"

/* The examples of FIPS 180-4. */
TEST(sha256_gives_the_published_answers)
{
    static const struct {
        const char *text, *want;
    } kat[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char hex[65];
    for (size_t i = 0; i < CO_COUNT(kat); i++) {
        co_sha256_of(kat[i].text, strlen(kat[i].text), hex);
        CHECK(strcmp(hex, kat[i].want) == 0, "\"%s\": %s", kat[i].text, hex);
    }
}

TEST(a_hash_does_not_depend_on_how_the_bytes_were_cut)
{
    static char bytes[1000];
    char whole[65], cut[65];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    co_sha256_of(bytes, sizeof bytes, whole);
    for (size_t step = 1; step < 200; step += 13) {
        co_sha256 h;
        co_sha256_init(&h);
        for (size_t at = 0; at < sizeof bytes; at += step)
            co_sha256_add(&h, bytes + at, at + step < sizeof bytes ? step : sizeof bytes - at);
        co_sha256_hex(&h, cut);
        CHECK(strcmp(whole, cut) == 0, "pieces of %zu", step);
    }
}

TEST(a_file_hashes_like_its_bytes)
{
    static char bytes[200001];
    char of_file[65], of_bytes[65];
    uint64_t len = 0;
    memset(bytes, 'x', sizeof bytes);
    CHECK_OK(co_fs_write_atomic("f", bytes, sizeof bytes));
    CHECK_OK(co_sha256_of_file("f", of_file, &len));
    co_sha256_of(bytes, sizeof bytes, of_bytes);
    CHECK(strcmp(of_file, of_bytes) == 0 && len == sizeof bytes, "%s %s", of_file, of_bytes);
    CHECK_OK(co_sha256_of_file("f", of_file, NULL));
    CHECK_FAILS(co_sha256_of_file("absent", of_file, NULL), CO_EIO, "absent: No such file");
    CHECK_FAILS(co_sha256_of_file(".", of_file, NULL), CO_EIO, "Is a directory");
}

TEST(fnv1a_gives_the_published_answers)
{
    CHECK(co_fnv1a64("", 0) == 0xcbf29ce484222325, "%llx", (unsigned long long)co_fnv1a64("", 0));
    CHECK(co_fnv1a64("a", 1) == 0xaf63dc4c8601ec8c, "%llx", (unsigned long long)co_fnv1a64("a", 1));
    CHECK(co_fnv1a64("foobar", 6) == 0x85944171f73967e8, "%llx", (unsigned long long)co_fnv1a64("foobar", 6));
}

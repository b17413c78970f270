/* The transaction log: our writer against records that wandb's own protocol buffers serialised, and the
 * framing against a reader that is written here a second time. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "wandb_test.h"

enum { BLOCK = 32768 };

/* Reads the next record of the log, or NULL at its end. */
static char *next_record(const unsigned char *log, size_t size, size_t *at, size_t *len)
{
    co_str out = {0};

    for (;;) {
        size_t left = BLOCK - *at % BLOCK;
        if (left < 7) {
            for (size_t i = 0; i < left && *at + i < size; i++)
                CHECK(log[*at + i] == 0, "byte %zu fills up a block with %d", *at + i, log[*at + i]);
            *at += left;
            continue;
        }
        if (*at >= size)
            return NULL;
        CHECK(*at + 7 <= size, "a head is cut at %zu", *at);
        const unsigned char *head = log + *at;
        unsigned crc =
            (unsigned)head[0] | (unsigned)head[1] << 8 | (unsigned)head[2] << 16 | (unsigned)head[3] << 24;
        size_t n = (size_t)head[4] | (size_t)head[5] << 8;
        int type = head[6];
        CHECK(*at + 7 + n <= size && n + 7 <= left, "a chunk of %zu at %zu does not fit its block", n, *at);
        CHECK(crc32(0, head + 6, (uInt)n + 1) == crc, "the checksum at %zu", *at);
        CHECK((type == 1 || type == 2) == (out.len == 0 && !out.p), "chunk type %d at %zu", type, *at);
        co_str_addn(&out, (const char *)head + 7, n);
        *at += 7 + n;
        if (type == 1 || type == 4) {
            *len = out.len;
            return co_str_take(&out);
        }
    }
}

static void read_log(unsigned char **log, size_t *size, const char *path)
{
    char *bytes;
    CHECK_OK(co_fs_read(&bytes, size, path, 1 << 24));
    *log = (unsigned char *)bytes;
    CHECK(*size >= 7 && memcmp(bytes, ":W&B\xe1\xbe\0", 7) == 0, "the head of the file");
}

TEST(records_of_any_length_come_out_of_the_log_as_they_went_in)
{
    /* around the room of the first block (7 bytes less) and of a whole one, and what leaves 0 to 8 bytes in
     * a block */
    static const size_t sizes[] = {0,     1,     BLOCK - 15, 0,     32740, 13,    BLOCK - 14, 5,
                                   70000, 32700, 40,         32753, 3,     32747, 1,          200000};
    spool sp;
    CHECK_OK(spool_open(&sp, ".", "x.wandb"));
    log_head(&sp);
    for (size_t i = 0; i < CO_COUNT(sizes); i++) {
        char *data = co_alloc(sizes[i] + 1);
        memset(data, (int)i + 1, sizes[i]);
        log_record(&sp, data, sizes[i]);
        co_free(data);
        if (i % 3 == 0)
            CHECK_OK(spool_flush(&sp));
    }
    CHECK_OK(spool_flush(&sp));
    spool_close(&sp);
    unsigned char *log;
    size_t size, at = 7, len;
    read_log(&log, &size, "x.wandb");
    for (size_t i = 0; i < CO_COUNT(sizes); i++) {
        char *data = next_record(log, size, &at, &len);
        CHECK(data && len == sizes[i], "record %zu: %zu bytes, wanted %zu", i, len, sizes[i]);
        for (size_t k = 0; k < len; k++)
            CHECK(data[k] == (char)(i + 1), "record %zu byte %zu", i, k);
        co_free(data);
    }
    CHECK(!next_record(log, size, &at, &len), "more records");
    co_free(log);
}

static void golden_settings(wandb_settings *set)
{
    *set = (wandb_settings){.id = "abcd1234",
                            .entity = "team",
                            .project = "digits",
                            .group = "g1",
                            .job_type = "train",
                            .name = "first",
                            .notes = "a \xc3\xa9 note",
                            .sweep = "sw",
                            .host = "node1",
                            .program = "cohort",
                            .remote = "https://example.org/x.git",
                            .commit = "0123abc"};
    set->tags = json_pack("[ss]", "a", "b");
}

static void write_golden(record_log *log)
{
    wandb_settings set;
    machine_facts machine = {"Linux", "/root", "/usr/bin/cohort", "w1", 200};
    json_t *config = json_pack("{sf s{si ss}}", "lr", 0.1, "model", "hidden", 128, "name", "cnn");
    json_t *changed = json_pack("{sf}", "lr", 0.2);
    item_list row = {0}, stats = {0};

    golden_settings(&set);
    CHECK_OK(items_set(&row, "train/loss", "0.25"));
    CHECK_OK(items_set_num(&row, "val/acc", 0.0 / 0.0));
    CHECK_OK(items_set(&row, "_step", "300"));
    CHECK_OK(items_set_num(&stats, "gpu.0.gpu", 99.5));
    entry_header(log);
    entry_run(log, &set, config, 1794921674.5);
    entry_environment(log, &set, &machine, 1794921674.5);
    entry_telemetry(log);
    entry_metrics(log);
    entry_history(log, 300, &row);
    entry_summary(log, &row, 7);
    entry_stats(log, 1794921700.25, &stats);
    entry_output(log, 1794921700, "hello", 5);
    entry_file(log, "media/images/x.png", FILE_MEDIA);
    entry_config(log, changed);
    entry_end(log, 1, 26);
    items_fini(&row);
    items_fini(&stats);
    json_decref(config);
    json_decref(changed);
    json_decref(set.tags);
}

TEST(every_record_has_the_bytes_that_wandb_writes_for_it)
{
    record_log writer = {0};
    json_t *golden;
    unsigned char *log;
    size_t size, at = 7, len;
    CHECK_OK(spool_open(&writer.out, ".", "g.wandb"));
    log_head(&writer.out);
    write_golden(&writer);
    CHECK_OK(spool_flush(&writer.out));
    spool_close(&writer.out);
    co_str_fini(&writer.record);
    CHECK_OK(co_json_read(&golden, test_repo("tests/golden/wandb.json"), 1 << 20));
    read_log(&log, &size, "g.wandb");
    json_t *records = json_object_get(golden, "records"), *want;
    size_t i;
    json_array_foreach(records, i, want)
    {
        char *data = next_record(log, size, &at, &len);
        co_str hex = {0};
        CHECK(data, "%s is missing", co_json_str(want, "name"));
        for (size_t k = 0; k < len; k++)
            co_str_addf(&hex, "%02x", (unsigned char)data[k]);
        CHECK(strcmp(co_str_text(&hex), co_json_str(want, "hex")) == 0, "%s:\n%s\nwanted:\n%s",
              co_json_str(want, "name"), co_str_text(&hex), co_json_str(want, "hex"));
        co_str_fini(&hex);
        co_free(data);
    }
    CHECK(!next_record(log, size, &at, &len), "more records than wandb has");
    json_decref(golden);
    co_free(log);
}

TEST(a_full_disk_costs_no_byte_of_the_log)
{
    spool sp;
    struct stat st;
    if (test_sh("mkdir d && mount -t tmpfs -o size=16k none d").status != 0)
        test_skip("no tmpfs can be mounted here");
    CHECK_OK(spool_open(&sp, "d", "x"));
    for (int i = 0; i < 40000; i++)
        co_str_addf(&sp.pending, "%d\n", i);
    CHECK_FAILS(spool_flush(&sp), CO_EIO, "d/x");
    test_sh("mount -o remount,size=1M d");
    CHECK_OK(spool_flush(&sp));
    char *text;
    size_t len;
    CHECK_OK(co_fs_read(&text, &len, "d/x", 1 << 20));
    char *at = text;
    for (long i = 0; i < 40000; i++) {
        CHECK(strtol(at, &at, 10) == i, "line %ld", i);
        at++;
    }
    CHECK(stat("d/x", &st) == 0 && (size_t)st.st_size == len && atomic_load(&sp.written) == len, "size");
    co_free(text);
    spool_close(&sp);
    test_sh("umount d");
}

/* Files that are no files, and packed files that unpack without end. */
#include "data/pictures.h"

#include "data/cache_int.h"
#include "data/file_int.h"

static const char *const pets[] = {"cat", "dog", NULL};

TEST(a_named_pipe_given_as_data_is_refused_and_not_waited_for)
{
    co_dataset *d;
    packed *p;

    sh("mkfifo p.txt p.tar p.gz");
    CHECK_FAILS(set_try(&d, "text", "path", "p.txt", (char *)NULL), CO_EINPUT,
                "p.txt is a named pipe, not a file");
    CHECK_FAILS(set_try(&d, "imagefolder", "dir", "p.tar", (char *)NULL), CO_EINPUT, "p.tar is a named pipe");
    CHECK_FAILS(packed_open(&p, "p.gz"), CO_EINPUT, "p.gz is a named pipe");
    CHECK_FAILS(packed_open(&p, "/dev/zero"), CO_EINPUT, "/dev/zero is a device");
    put_classes("d/train", pets, 2);
    sh("mkfifo d/train/cat/x.jpg");
    CHECK_FAILS(set_try(&d, "imagefolder", "dir", "d", (char *)NULL), CO_EINPUT,
                "d/train/cat/x.jpg is a named pipe");
    sh("rm d/train/cat/x.jpg && mkfifo d/train/notes");
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", (char *)NULL));
    co_dataset_close(d);
}

TEST(a_picture_that_becomes_a_named_pipe_is_lost_and_not_waited_for)
{
    co_dataset *d;
    int32_t y;

    put_classes("d/train", pets, 2);
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "cache_mb", "0", (char *)NULL));
    sh("for f in d/train/*/*.jpg; do rm $f; mkfifo $f; done");
    CHECK(d->fill(d, CO_SPLIT_TRAIN, &(uint32_t){0}, (co_slice_shape){1, 0}, &(co_draw){0},
                  &(co_slice_dst){.y = &y}) < 0,
          "taken");
    co_dataset_close(d);
}

TEST(a_socket_given_as_data_is_refused)
{
    sh("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s.gz\")' || mkfifo s.gz");
    packed *p;
    CHECK_FAILS(packed_open(&p, "s.gz"), CO_EINPUT, "not a file");
}

static void put_zeros(const char *path, size_t len, bool xz)
{
    size_t packed_len;
    uint8_t *zeros = calloc(1, len);
    uint8_t *bytes = xz ? pack_xz(zeros, len, &packed_len) : pack_gz(zeros, len, &packed_len);

    put_file(path, bytes, packed_len);
    free(bytes);
    free(zeros);
}

TEST(a_packed_file_that_unpacks_without_measure_is_refused_with_size_and_limit)
{
    co_dataset *d;
    char plain[4096];

    CHECK(setenv("COHORT_CACHE", "cache", 1) == 0, "%m");
    put_zeros("bomb.tar.xz", 66 << 20, true);
    CHECK_FAILS(set_try(&d, "imagefolder", "dir", "bomb.tar.xz", (char *)NULL), CO_EINPUT,
                "bytes unpack to more than 67,");
    put_zeros("small.gz", 1001, false);
    CHECK_FAILS(cache_plain(plain, "small.gz", 1000), CO_EINPUT, "bytes unpack to more than 1,000, the limit");
    sh("test -z \"$(ls cache/unpacked-1)\""); /* nothing is left of it */
    CHECK(setenv("COHORT_CACHE", "/proc/nowhere", 1) == 0, "%m");
    CHECK_FAILS(set_try(&d, "imagefolder", "dir", "bomb.tar.xz", (char *)NULL), CO_EINPUT,
                "bytes unpack to more than ");
}

TEST(a_packed_file_of_cifar_is_unpacked_no_further_than_its_known_size)
{
    struct unpack_job job = {.want = 1000};
    uint8_t room[1000];

    CHECK(setenv("COHORT_CACHE", "cache", 1) == 0, "%m");
    put_zeros("data_batch_1.bin.xz", 2 << 20, true);
    snprintf(job.path, sizeof job.path, "data_batch_1.bin.xz");
    job.to = room;
    CHECK_FAILS(unpack_all(&job, 1), CO_EINPUT, "data_batch_1.bin.xz: its ");
    CHECK_FAILS(unpack_all(&job, 1), CO_EINPUT, "unpack to more than 1,049,576, the limit");
}

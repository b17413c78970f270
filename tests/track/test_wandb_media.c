/* Pictures and tables of the record in wandb's form. */
#include "track_test.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "track/track_int.h"
#include "wandb/wandb.h"

static void take(void *self, const char *text)
{
    json_t *v;
    CHECK_OK(co_json_parse(&v, text, strlen(text), "line"));
    CHECK_OK(wandb_def.take(self, &(co_record_line){.text = text, .len = strlen(text), .json = v}));
    json_decref(v);
}

TEST(pictures_of_a_step_are_one_value_and_a_table_names_copies_of_its_pictures)
{
    void *self;
    co_wandb_cfg cfg = {0};
    test_sh("mkdir -p r/media; printf one > r/media/a.png; printf two > r/media/b.png;"
            "printf '{\"columns\":[\"image\",\"truth\"],\"data\":[[{\"image\":\"media/a.png\"},\"7\"],"
            "[{\"image\":\"../../etc/passwd\"},\"8\"],[{\"image\":\"media/none.png\"},\"9\"]]}' > "
            "r/media/t.json");
    CHECK_OK(wandb_def.open(&self, &(co_run_facts){.dir = "r", .task = "t", .host = "h"}, &cfg));
    take(self,
         "{\"step\":5,\"name\":\"val/samples\",\"image\":{\"file\":\"media/a.png\",\"sha256\":"
         "\"7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed\",\"width\":8,\"height\":4,"
         "\"caption\":\"7 (truth 1)\",\"index\":0},\"t\":2}");
    take(self,
         "{\"step\":5,\"name\":\"val/samples\",\"image\":{\"file\":\"media/b.png\",\"width\":8,\"height\":4,"
         "\"index\":1},\"t\":2}");
    take(self, "{\"step\":5,\"name\":\"val/samples\",\"image\":{\"file\":\"media/"
               "b.png\",\"sha256\":\"00\"},\"t\":2}");
    take(self, "{\"step\":5,\"name\":\"table\",\"table\":{\"file\":\"media/t.json\",\"rows\":3},\"t\":2}");
    take(self, "{\"step\":5,\"name\":\"w\",\"histogram\":{\"edges\":[-1,0,1],\"counts\":[3,5]},\"t\":2}");
    take(self, "{\"step\":5,\"name\":\"note\",\"text\":\"hello\",\"t\":2}");
    CHECK_OK(wandb_def.flush(self));
    wandb_def.close(self);
    test_run r =
        test_sh("cd r/wandb/latest-run/files; cat wandb-summary.json; ls media/*; cat media/table/*");
    static const char *const wants[] = {
        ("\"val/samples\":{\"_type\":\"images/"
         "separated\",\"width\":8,\"height\":4,\"format\":\"png\",\"count\":2,"
         "\"filenames\":[\"media/images/7692c3ad3540bb803c02.png\",\"media/images/3fc4ccfe7458"
         "70e2c0d9.png\"],\"captions\":[\"7 (truth 1)\",\"\"]}"),
        "\"table\":{\"_type\":\"table-file\",\"path\":\"media/table/table_5_",
        "\"ncols\":2,\"nrows\":3",
        "\"w\":{\"_type\":\"histogram\",\"values\":[3,5],\"bins\":[-1,0,1]}",
        "\"note\":\"hello\"",
        ("{\"columns\":[\"image\",\"truth\"],\"data\":[[{\"_type\":\"image-file\",\"path\":\"media/images/"
         "7692c3ad3540bb803c02.png")};
    for (size_t i = 0; i < CO_COUNT(wants); i++)
        CHECK(test_contains(r.out, wants[i]), "no %s in %s", wants[i], r.out);
    CHECK(test_contains(r.out, "[null,\"8\"],[null,\"9\"]]}"), "%s", r.out);
}

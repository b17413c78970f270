/* model.pretrained=true against a hub on loopback: download, resume, checksum, cache; and the warning about
 * the rate. */
#include "cli/runs.h"
#include "fetch/server.h"

#include "base/hash.h"
#include "net/http.h"

/* The smallest model with a public name, made smaller still; what matters comes before the first step. */
#define MODEL                                                                                                \
    "model=vit_tiny_patch16_224 model.embed_dim=24 model.depth=1 model.num_heads=1 data=fake_images "        \
    "data.size=16 data.n=8 data.batch_size=8 trainer.max_steps=1 trainer.devices=1 "
#define LINE MODEL "data.classes=3 console=plain callbacks.model_checkpoint.enabled=false "
#define NAME "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k"
#define HUB  "/" NAME "/resolve/main/model.safetensors"

typedef struct hub {
    route routes[4];
    server server;
    char *file;
    char headers[200];
} hub;

/* Weights for 5 classes, in the place where the hub has them. The hub redirects to a store. */
static void hub_start(hub *h)
{
    static const char make[] =
        "$COHORT train " MODEL "data.classes=5 optim.lr=0 run.dir=made console=quiet && "
        "$COHORT ckpt export made --out made.safetensors";
    co_http *http;
    size_t len;
    char sha[65];

    if (co_http_open(&http) != CO_OK)
        test_skip("%s", co_errmsg());
    co_http_close(http);
    succeeds(make);
    CHECK_OK(co_fs_read(&h->file, &len, "made.safetensors", (size_t)1 << 30));
    CHECK_OK(co_sha256_of_file("made.safetensors", sha, NULL));
    snprintf(h->headers, sizeof h->headers, "X-Linked-ETag: \"%s\"\r\nX-Linked-Size: %zu\r\n", sha, len);
    h->routes[0] = (route){.path = HUB, .location = "/store/1?sig=x", .extra = h->headers};
    h->routes[1] = (route){.path = "/store/1?sig=x", .body = h->file, .len = len};
    h->server = (server){.routes = h->routes};
    server_start(&h->server);
    char base[100];
    snprintf(base, sizeof base, "http://127.0.0.1:%d/", h->server.port);
    setenv("HF_ENDPOINT", base, 1);
    setenv("COHORT_CACHE", "cache", 1);
}

static void says(int status, const char *words, const char *what)
{
    test_run r = test_sh("$COHORT train " LINE "%s", words);

    CHECK(r.status == status && test_contains(r.out, what), "%s: status %d, wanted %d and \"%s\": %s", words,
          r.status, status, what, r.out);
    free(r.out);
}

TEST(pretrained_weights_are_downloaded_once_checked_and_kept)
{
    static hub h;

    hub_start(&h);
    says(0, "model.pretrained=true run.dir=a optim.lr=0",
         "weights   " NAME " (downloaded, SHA-256 compared); head.* starts anew: [5,24] there, [3,24] here\n"
         "          they were made with data.normalize=0.5:0.5:0.5/0.5:0.5:0.5");
    says(0, "--pretrained run.dir=b optim.lr=0", "weights   " NAME " (in the cache, SHA-256 compared)");
    CHECK(h.routes[1].asked == 1, "downloaded %d times", h.routes[1].asked);
    /* damage in the cache is noticed, and the file fetched again */
    succeeds("f=$(ls cache/models-1/*.safetensors); printf x | dd of=$f bs=1 seek=20000 conv=notrunc "
             "2>/dev/null");
    says(0, "model.pretrained=true run.dir=c optim.lr=0", "(downloaded, SHA-256 compared)");
    CHECK(h.routes[1].asked == 2, "downloaded %d times", h.routes[1].asked);
    char one[65], two[65];
    sha_of_run(one, "a");
    sha_of_run(two, "c");
    CHECK(strcmp(one, two) == 0, "other weights");
    server_stop(&h.server);
}

TEST(pretrained_weights_that_do_not_come_or_are_wrong_start_nothing)
{
    static hub h;

    hub_start(&h);
    h.routes[1].status = 404;
    says(1, "model.pretrained=true run.dir=a", "the weights " NAME " could not be downloaded: ");
    h.routes[1].status = 0;
    h.headers[16] = h.headers[16] == '0' ? '1' : '0';
    says(2, "model.pretrained=true run.dir=a", "its SHA-256 is");
    CHECK(!co_fs_exists("a"), "a run folder was made");
    says(2, "model.pretrained=true model=vit_tiny_patch4_32 run.dir=a",
         "no weights of model=vit_tiny_patch4_32 are known here");
    says(2, "model.pretrained=true optim.lr=fast run.dir=a", "optim.lr");
    CHECK(h.routes[0].asked == 2, "asked %d times", h.routes[0].asked);
    h.routes[0].extra = NULL; /* a mirror without checksums */
    says(0, "model.pretrained=true run.dir=a optim.lr=0", "(downloaded; its server states no checksum)");
    server_stop(&h.server);
}

/* The rate is judged by optimiser, for the parameters that were loaded. */
TEST(a_rate_too_high_for_loaded_weights_is_warned_of)
{
    static const struct {
        const char *words;
        bool warns;
    } rows[] = {{"optim=adam optim.lr=2e-3", true},
                {"optim=adam optim.lr=1e-4", false},
                {"optim=adamw optim.lr=6e-4", true},
                {"optim=sgd optim.lr=0.1", true},
                {"optim=sgd optim.lr=0.01", false},
                {"optim=adam optim.lr=1e-4 optim.lr_groups='fc.*:50'", false},
                {"optim=adam optim.lr=1e-2 optim.freeze=\"'conv*,bn*'\"", false}};
    static const char make[] =
        "$COHORT train data=digits model=cnn model.width=4 trainer.max_steps=1 console=quiet "
        "run.dir=m && $COHORT ckpt export m --out m.safetensors";

    succeeds(make);
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        test_run r =
            test_sh("$COHORT plan model=cnn model.width=4 data=fake_images data.size=8 data.planes=1 "
                    "data.classes=3 model.pretrained=m.safetensors %s",
                    rows[i].words);
        bool warned = test_contains(r.out, "is high for weights that were loaded: above ");
        CHECK(r.status == 0 && warned == rows[i].warns, "%s: %s", rows[i].words, r.out);
        free(r.out);
    }
    test_run r = test_sh("$COHORT plan model=cnn data=digits optim=adam optim.lr=1");
    CHECK(r.status == 0 && !test_contains(r.out, "is high"), "without loaded weights: %s", r.out);
    free(r.out);
}

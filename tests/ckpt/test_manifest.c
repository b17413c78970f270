/* manifest.json: every field checked, and the manifest's own hash. */
#include "ckpt/small.h"

#include "base/fs.h"
#include "base/hash.h"

#define HASH  "0011223344556677889900aabbccddeeff00112233445566778899aabbccddee"
#define FILES "\"files\": {\"model.safetensors\": {\"bytes\": 100, \"sha256\": \"" HASH "\"}}"
#define SEED  "\"seed\": \"18446744073709551615\""
#define KIND  "\"format\": \"cohort-checkpoint\", \"version\": 1"

/* All of a good manifest but for the fields that a test gives itself. */
#define NUMBERS                                                                                              \
    "\"applied\": 9, \"epoch\": 1, \"samples\": 640, \"slices\": 8, \"global_batch\": 64, \"view\": 0"
#define STEP    "\"step\": 10"
#define STRINGS "\"data\": \"digits\", \"optim\": \"sgd\", \"kernels\": \"ref-1\""
#define MODEL   "\"model\": \"mlp\""
#define HASHES  "\"config_sha256\": \"\", \"data_sha256\": \"" HASH "\", \"weights_sha256\": \"" HASH "\""

/* Closes the members with the right self_sha256, as docs/formats/checkpoint.md says, and parses. */
static co_err parse(co_ckpt_meta *meta, const char *members)
{
    char hex[65], *text = NULL;
    const char *zeros = "0000000000000000000000000000000000000000000000000000000000000000";
    text = co_sprintf("{%s,\n  \"self_sha256\": \"%s\"\n}\n", members, zeros);
    co_sha256_of(text, strlen(text), hex);
    memcpy(text + strlen(text) - 4 - 64, hex, 64);
    co_err err = co_ckpt_parse_manifest(meta, text, strlen(text), "manifest.json");
    co_free(text);
    return err;
}

#define ALL(kind, step, seed, model, files)                                                                  \
    kind ", " step ", " NUMBERS ", " seed ", " model ", " STRINGS ", " HASHES ", " files

TEST(a_manifest_gives_its_meta)
{
    co_ckpt_meta m = {0};
    CHECK_OK(parse(&m, ALL(KIND, STEP, SEED, MODEL, FILES) ", \"extra\": {\"a\": [1]}, \"later\": true"));
    CHECK(m.step == 10 && m.applied == 9 && m.samples == 640 && m.seed == UINT64_MAX && m.slices == 8,
          "numbers");
    CHECK(strcmp(m.model, "mlp") == 0 && strcmp(m.weights_sha256, HASH) == 0 && !m.config_sha256[0], "texts");
    CHECK(json_array_size(json_object_get(m.extra, "a")) == 1, "extra");
    co_ckpt_meta_fini(&m);
    CHECK(!m.extra, "fini");
}

#define FILE_(name, bytes, hash) "\"files\": {\"" name "\": {\"bytes\": " bytes ", \"sha256\": \"" hash "\"}}"

TEST(a_manifest_that_breaks_a_rule_is_refused_by_name)
{
    static const struct {
        const char *members, *why;
    } bad[] = {
        {ALL("\"format\": \"zip\", \"version\": 1", STEP, SEED, MODEL, FILES), "\"format\" is not"},
        {ALL("\"version\": 1", STEP, SEED, MODEL, FILES), "\"format\" is not"},
        {ALL("\"format\": \"cohort-checkpoint\"", STEP, SEED, MODEL, FILES), "\"version\" is not"},
        {ALL("\"format\": \"cohort-checkpoint\", \"version\": 2", STEP, SEED, MODEL, FILES),
         "version 2; this program reads version 1 (a newer cohort wrote it"},
        {ALL("\"format\": \"cohort-checkpoint\", \"version\": 0", STEP, SEED, MODEL, FILES),
         "version 0; this"},
        {ALL(KIND, "\"stop\": 1", SEED, MODEL, FILES), "\"step\" is not a whole number"},
        {ALL(KIND, "\"step\": -1", SEED, MODEL, FILES), "\"step\" is not a whole number"},
        {ALL(KIND, "\"step\": 1.5", SEED, MODEL, FILES), "\"step\" is not a whole number"},
        {ALL(KIND, "\"step\": \"1\"", SEED, MODEL, FILES), "\"step\" is not a whole number"},
        {ALL(KIND, "\"step\": 9223372036854775808", SEED, MODEL, FILES), "JSON"},
        {ALL(KIND, STEP ", " STEP, SEED, MODEL, FILES), "JSON"},
        {ALL(KIND, STEP, "\"seed\": 1", MODEL, FILES), "\"seed\" is not"},
        {ALL(KIND, STEP, "\"seed\": \"\"", MODEL, FILES), "\"seed\" is not"},
        {ALL(KIND, STEP, "\"seed\": \"-1\"", MODEL, FILES), "\"seed\" is not"},
        {ALL(KIND, STEP, "\"seed\": \"01\"", MODEL, FILES), "\"seed\" is not"},
        {ALL(KIND, STEP, "\"seed\": \"18446744073709551616\"", MODEL, FILES), "\"seed\" is not"},
        {ALL(KIND, STEP, SEED, "\"model\": \"a\\nb\"", FILES), "\"model\" is not a text of up to 63 bytes"},
        {ALL(KIND, STEP, SEED, "\"model\": \"" HASH "\"", FILES),
         "\"model\" is not a text of up to 63 bytes"},
        {ALL(KIND, STEP, SEED, "\"model\": null", FILES), "\"model\" is not"},
        {ALL(KIND, STEP, SEED, MODEL, FILES) ", \"extra\": []", "\"extra\" is not an object"},
        {ALL(KIND, STEP, SEED, MODEL, "\"files\": []"), "\"files\" is not"},
        {ALL(KIND, STEP, SEED, MODEL, "\"files\": {}"), "lists no model.safetensors"},
        {ALL(KIND, STEP, SEED, MODEL, FILE_("optim.safetensors", "1", HASH)), "lists no model.safetensors"},
        {ALL(KIND, STEP, SEED, MODEL, FILE_("../../etc/passwd", "1", HASH)), "is not the name of a file"},
        {ALL(KIND, STEP, SEED, MODEL, FILE_("/etc/passwd", "1", HASH)), "is not the name of a file"},
        {ALL(KIND, STEP, SEED, MODEL, FILE_("..", "1", HASH)), "is not the name of a file"},
        {ALL(KIND, STEP, SEED, MODEL, FILE_(".hidden", "1", HASH)), "is not the name of a file"},
        {ALL(KIND, STEP, SEED, MODEL, FILE_("", "1", HASH)), "is not the name of a file"},
        {ALL(KIND, STEP, SEED, MODEL, FILE_("manifest.json", "1", HASH)), "is not the name of a file"},
        {ALL(KIND, STEP, SEED, MODEL, FILE_("model.safetensors", "-1", HASH)),
         "the size of model.safetensors"},
        {ALL(KIND, STEP, SEED, MODEL, FILE_("model.safetensors", "1e3", HASH)),
         "the size of model.safetensors"},
        {ALL(KIND, STEP, SEED, MODEL, FILE_("model.safetensors", "1", "00")), "the SHA-256 of model"},
        {ALL(KIND, STEP, SEED, MODEL, FILE_("model.safetensors", "1", HASH "0")), "the SHA-256 of model"},
        {ALL(KIND, STEP, SEED, MODEL, "\"files\": {\"model.safetensors\": 1}"), "the size of model"},
    };
    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        co_ckpt_meta m = {0};
        co_err err = parse(&m, bad[i].members);
        CHECK(err == CO_EFORMAT && test_contains(co_errmsg(), bad[i].why) &&
                  strncmp(co_errmsg(), "manifest.json: ", 15) == 0,
              "case %zu: error %d, \"%s\", wanted \"%s\"", i, (int)err, co_errmsg(), bad[i].why);
        CHECK(!m.extra && m.step == 0, "case %zu: written on failure", i);
    }
}

TEST(a_manifest_edited_by_hand_is_refused)
{
    struct small s;
    char *text = NULL;
    size_t len;
    co_ckpt_meta m;
    small_init(&s, 4);
    CHECK_OK(small_save(&s, "r", "x", 7));
    CHECK_OK(co_fs_read(&text, &len, "r/x/manifest.json", 1 << 20));
    char *step = strstr(text, "\"step\": 7");
    CHECK(step, "no step in:\n%s", text);
    step[8] = '8';
    CHECK_FAILS(co_ckpt_parse_manifest(&m, text, len, "manifest.json"), CO_EFORMAT,
                "manifest.json: its own SHA-256 differs (altered or torn)");
    step[8] = '7';
    CHECK_OK(co_ckpt_parse_manifest(&m, text, len, "manifest.json"));
    CHECK_FAILS(co_ckpt_parse_manifest(&m, text, len - 1, "manifest.json"), CO_EFORMAT, "does not end as");
    co_free(text);
    small_fini(&s);
}

TEST(a_meta_that_could_not_be_read_back_is_not_written)
{
    struct small s;
    co_ckpt_meta m = small_meta(1);
    small_init(&s, 4);
    m.samples = -1;
    CHECK_FAILS(co_ckpt_save("r", "x", &s.l, 0, NULL, &m, &(co_ckpt_source){small_read, &s}), CO_EFORMAT,
                "\"samples\" is not a whole number");
    m = small_meta(1);
    strcpy(m.model, "\xff");
    CHECK(co_ckpt_save("r", "x", &s.l, 0, NULL, &m, &(co_ckpt_source){small_read, &s}) != CO_OK, "not UTF-8");
    test_run ls = test_sh("ls -A r");
    CHECK(!*ls.out, "leftovers: %s", ls.out);
    free(ls.out);
    small_fini(&s);
}

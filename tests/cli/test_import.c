/* `cohort ckpt import` and `export --to hf` through the program: where they write, what they say and
 * compare. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

TEST(an_imported_file_is_written_beside_the_file_of_torch_save)
{
    test_run r =
        test_sh("set -e; cp %s a.pth; cp %s last.ckpt; $COHORT ckpt import a.pth; ls a.safetensors;"
                "$COHORT ckpt import last.ckpt --to b.safetensors; cmp a.safetensors b.safetensors;"
                "$COHORT ckpt import last.ckpt --to c.safetensors --json;"
                "set +e; $COHORT ckpt import a.pth; echo status $?; $COHORT ckpt import nowhere.pth;"
                "echo status $?; $COHORT ckpt import; echo status $?; $COHORT ckpt import a.pth b.pth;"
                "$COHORT ckpt import a.pth data=digits; $COHORT ckpt import a.pth --ema; head -c 2000 a.pth "
                "> cut.pth;"
                "$COHORT ckpt import cut.pth; echo status $?",
                test_repo("tests/golden/pth/small.pth"), test_repo("tests/golden/pth/lightning.ckpt"));
    static const char *const wanted[] = {"5 tensors, 0.0 MB\n",
                                         "a.safetensors\n",
                                         "from state_dict, names without \"net.\"",
                                         "\"tensors\":5",
                                         "a.safetensors is there already; give another name: --to FILE",
                                         "nowhere.pth: there is no such file",
                                         "ckpt import takes a file of torch.save",
                                         "what is b.pth?",
                                         "data=digits without model=NAME",
                                         "ckpt import has no --ema: it is for export",
                                         "cut.pth: not a whole zip archive",
                                         "status 2",
                                         "status 1"};

    test_has_all(r.out, wanted, CO_COUNT(wanted));
    free(r.out);
}

/* The tensors of one model compared with another: refused, and nothing is left. */
TEST(an_import_compares_names_and_shapes_with_the_model_on_request)
{
    test_run r = test_sh("cp %s a.pth; $COHORT ckpt import a.pth model=resnet18; echo status $?;"
                         "$COHORT ckpt import a.pth model=resnet1800; echo status $?; ls *.safetensors;"
                         "$COHORT ckpt import a.pth model=resnet18 --to out.bin",
                         test_repo("tests/golden/pth/small.pth"));

    CHECK(test_contains(r.out, "tensor bn.num_batches_tracked is in it, but not in the model"), "%s", r.out);
    CHECK(test_contains(r.out, "resnet1800"), "%s", r.out);
    CHECK(test_contains(r.out, "weights of a.pth do not fit") && !test_contains(r.out, "out.bin"), "%s", r.out);
    CHECK(!test_contains(r.out, "status 0") && !test_contains(r.out, "a.safetensors\n"), "%s", r.out);
    free(r.out);
}

TEST(a_folder_for_timm_says_what_the_model_and_its_pictures_are)
{
    test_run r = test_sh(
        "F='data=fake_images data.size=32 trainer.max_steps=1 console=quiet test=false';"
        "$COHORT train $F model=vit_tiny_patch4_32 model.depth=2 model.embed_dim=64 model.num_heads=4 "
        "run.dir=v > /dev/null; $COHORT train $F model=cnn model.width=4 run.dir=c > /dev/null;"
        "$COHORT ckpt export v --to hf --out vit && cat vit/config.json; ls vit;"
        "$COHORT ckpt export c --to hf --out cnn; ls cnn;"
        "$COHORT ckpt export c --to onnx --out x; echo status $?;"
        "$COHORT ckpt export c --to hf --out cnn; echo status $?;"
        "$COHORT ckpt export c --to hf --out no/where; echo status $?;"
        "$COHORT ckpt export c --to safetensors --out c.safetensors;"
        "cmp c.safetensors cnn/model.safetensors && echo alike");
    static const char *const wanted[] = {"\"architecture\": \"vit_tiny_patch16_224\"",
                                         "\"num_classes\": 10",
                                         "\"num_features\": 64",
                                         "\"patch_size\": 4",
                                         "\"depth\": 2",
                                         "\"num_heads\": 4",
                                         "\"classifier\": \"head\"",
                                         "config.json\nmodel.safetensors\n",
                                         "timm has no model like this cnn",
                                         "ckpt export --to onnx: there are safetensors and hf",
                                         "cnn is there already",
                                         "mkdir no/where",
                                         "alike"};

    test_has_all(r.out, wanted, CO_COUNT(wanted));
    free(r.out);
}

TEST(a_folder_of_a_model_without_pictures_names_no_layer_that_it_lacks)
{
    test_run r =
        test_sh("$COHORT train data=movielens data.dir=%s model=factors run.dir=f trainer.max_steps=1 "
                "console=quiet test=false > /dev/null; $COHORT ckpt export f --to hf --out hf && "
                "cat hf/config.json",
                test_repo("tests/data/movielens/csv"));

    CHECK(r.status == 0 && test_contains(r.out, "\"architecture\": \"factors\""), "%d %s", r.status, r.out);
    CHECK(!test_contains(r.out, "conv1") && !test_contains(r.out, "\"fc\"") &&
              !test_contains(r.out, "num_classes"),
          "%s", r.out);
    free(r.out);
}

/* Where the data is not, the folder is made all the same, and the reader is warned. */
TEST(a_folder_for_timm_is_made_without_the_data_and_says_what_it_lacks)
{
    test_run r =
        test_sh("mkdir -p d/train/a d/train/b; for i in 1 2 3 4 5 6 7 8; do cp %s d/train/a/$i.png;"
                "cp %s d/train/b/$i.png; done;"
                "$COHORT train data=imagefolder data.dir=d data.resize=40 data.crop=32 model=resnet18 "
                "trainer.max_steps=1 data.batch_size=4 console=quiet test=false run.dir=r > /dev/null;"
                "$COHORT ckpt export r --to hf --out with; cat with/config.json; echo ====; mv d gone;"
                "$COHORT ckpt export r --to hf --out without; echo status $?; cat without/config.json",
                test_repo("src/data/probe/probe.png"), test_repo("src/data/probe/probe.png"));
    char *without = strstr(r.out, "====");

    CHECK(without, "%s", r.out);
    *without++ = '\0';
    CHECK(test_contains(r.out, "0.485,") && test_contains(r.out, "0.229,") &&
              test_contains(r.out, "\"crop_pct\": 0.8") &&
              test_contains(r.out, "\"architecture\": \"resnet18\""),
          "%s", r.out);
    CHECK(test_contains(without, "the run's data set does not open here") &&
              test_contains(without, "status 0") && !test_contains(without, "mean\":"),
          "%s", without);
    free(r.out);
}

/* `cohort ckpt import` through the program: where it writes, what it says, what it compares. */
#include "harness.h"

#include <stdlib.h>

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

    for (size_t i = 0; i < CO_COUNT(wanted); i++)
        CHECK(test_contains(r.out, wanted[i]), "not there: %s\n%s", wanted[i], r.out);
    free(r.out);
}

/* The tensors of one model compared with another: refused, and nothing is left. */
TEST(an_import_compares_names_and_shapes_with_the_model_on_request)
{
    test_run r = test_sh("cp %s a.pth; $COHORT ckpt import a.pth model=resnet18; echo status $?;"
                         "$COHORT ckpt import a.pth model=resnet1800; echo status $?; ls *.safetensors",
                         test_repo("tests/golden/pth/small.pth"));

    CHECK(test_contains(r.out, "tensor bn.num_batches_tracked is in it, but not in the model"), "%s", r.out);
    CHECK(test_contains(r.out, "resnet1800"), "%s", r.out);
    CHECK(!test_contains(r.out, "status 0") && !test_contains(r.out, "a.safetensors\n"), "%s", r.out);
    free(r.out);
}

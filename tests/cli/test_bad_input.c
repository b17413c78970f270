/* Mistakes in a command line are refused before anything is created: exit status 2 within a second, a message
 * that names the culprit and what to do, and an unchanged working directory. */
#include "cli/runs.h"

#include <unistd.h>

struct wrong {
    const char *what, *line; /* after $COHORT */
    const char *says[5];     /* all must be in the message */
};

static const struct wrong table[] = {
    /* the line itself */
    {"unknown command", "trian", {"trian", "did you mean train?"}},
    {"unknown flag", "train --josn", {"--josn", "did you mean --json?"}},
    {"a setting with dashes", "train --trainer.devices=2", {"--trainer.devices", "without dashes"}},
    {"a flag without its value", "train --config-dir", {"--config-dir needs a value"}},
    {"no key", "train demo", {"\"demo\"", "key=value", "--help"}},
    {"help for what is not", "help trian", {"trian", "did you mean train?"}},
    /* flags and words of other programs */
    {"a mistyped flag of torchrun",
     "train --nproc_per_nod=4",
     {"--nproc_per_nod", "did you mean --nproc-per-node?"}},
    {"several hosts that meet nowhere",
     "train --nnodes=2 --nproc_per_node=2 data=digits",
     {"--nnodes=2 needs a place where the hosts meet", "--rdzv-endpoint=HOST:29400"}},
    {"elastic hosts", "train --nnodes=1:4", {"--nnodes=1:4 needs a place where the hosts meet"}},
    {"another host", "train --node_rank 1", {"--node-rank=1", "--nnodes=N"}},
    {"one of many",
     "train --world-size 2 --rank 1 --dist-url env://",
     {"--nnodes=2 needs a place where the hosts meet"}},
    {"a file to meet at", "train --world-size 2 --rank 1 --dist-url file:///x", {"tcp://HOST:PORT"}},
    {"more hosts than there may be", "train --nnodes=65 --rdzv-endpoint=h:1", {"65 hosts", "at most 64"}},
    {"no number of hosts", "train --nnodes=two --rdzv-endpoint=h:1", {"--nnodes=two", "a whole number"}},
    {"hosts twice",
     "train --nnodes=2 trainer.num_nodes=3 --rdzv-endpoint=h:1",
     {"--nnodes=2 and trainer.num_nodes=3", "leave one of them out"}},
    {"ranks twice",
     "train --nproc-per-node 2 trainer.devices=3",
     {"--nproc-per-node=2 and trainer.devices=3", "leave one of them out"}},
    {"a sweep over hosts", "train -m --nnodes=2 --rdzv-endpoint=h:1 seed=1,2", {"a sweep (-m)", "2 hosts"}},
    {"ranks on GPUs",
     "train --nproc_per_node=gpu",
     {"--nproc_per_node=gpu", "GPUs are not", "--nproc_per_node=cpu"}},
    {"ranks that are no number",
     "train --nproc_per_node=many",
     {"trainer.devices", "\"many\"", "auto or a number"}},
    {"a flag at the end without its value", "train --nproc_per_node", {"--nproc-per-node needs a value"}},
    {"a switch with a value", "train --standalone=yes", {"--standalone takes no value"}},
    {"a GPU", "train --gpu 0", {"--gpu 0", "GPUs are not in this version"}},
    {"weights from elsewhere",
     "train model=mlp data=digits --pretrained",
     {"model.pretrained=true", "no weights of model=mlp are known", "model.pretrained=FILE"}},
    {"evaluation", "train -e --resume run", {"-e: ", "cohort test ckpt_path="}},
    {"an epoch to start at", "train --start-epoch 3", {"--start-epoch 3", "ckpt_path="}},
    {"a network that is none", "train -a alexnet cfg", {"no model \"alexnet\"", "resnet18"}},
    {"a value with commas",
     "train optim.freeze=conv1.*,bn1.*",
     {"several values for one run", "is typed 'optim.freeze=\"conv1.*,bn1.*\"'"}},
    {"a batch that is none", "train -b 0.5", {"data.batch_size_per_rank", "0.5", "whole number"}},
    {"a negative batch", "train --batch_size=-4", {"data.batch_size_per_rank", "-4", "out of range"}},
    {"epochs in words", "train --epochs ten", {"trainer.max_epochs", "ten", "whole number"}},
    {"a rate that is none", "train --lr fast", {"optim.lr", "fast", "not a number"}},
    {"momentum for Adam",
     "train --momentum 0.9",
     {"momentum needs optim=sgd", "the line has optim=adamw, the default"}},
    {"a folder that is not there",
     "train -a resnet18 /no/such/folder",
     {"/no/such/folder: no such folder", "data.dir"}},
    {"two folders", "train cfg pics", {"pics: a second folder"}},
    {"three numbers", "train 50 10 5", {"5: a third number"}},
    {"no epochs", "train 0 10", {"trainer.max_epochs", "0 is out of range"}},
    {"made-up pictures", "train --dummy", {"--dummy", "folder of pictures"}},
    {"a language twice",
     "train --lang_src en --lang_tgt en data.dir=pairs/good.tsv",
     {"data.lang_src and data.lang_tgt are both en"}},
    {"pairs without a folder", "train experiment=en_it", {"data=pairs", "data.dir=FOLDER"}},
    {"an empty file of pairs", "train experiment=en_it data.dir=pairs/empty.tsv", {"empty.tsv", "no pairs"}},
    {"pairs parted by commas",
     "train experiment=en_it data.dir=pairs/commas.tsv",
     {"commas.tsv, line 1", "fields are parted by tabs, not by commas"}},
    {"pairs without a column",
     "train experiment=en_it data.dir=pairs/good.tsv data.column_tgt=3",
     {"good.tsv, line 1", "it side is column 3"}},
    {"a tokenizer that is none",
     "train experiment=en_it data.dir=pairs/good.tsv data.tokenizer_src=pairs/good.tsv",
     {"data.tokenizer_src", "good.tsv"}},
    {"a flag of the transformer without its task",
     "train --d_model 64",
     {"model.d_model needs", "experiment=en_it has it"}},
    {"an epoch to load", "train --preload 12", {"ckpt_path", "12 names an epoch", "ckpt_path=RUN/checkpoints/"}},
    {"nothing to resume", "train --resume nowhere", {"ckpt_path", "nowhere", "does not exist"}},
    {"a script's module", "train --module pkg.train", {"--module", "runs no script"}},
    /* all mistakes of a line at once */
    {"a key, the data and what to monitor",
     "train optim.lrr=1 data=mnist data.dir=nowhere callbacks.model_checkpoint.monitor=val/foo",
     {"optim.lrr", "data.dir: nowhere", "\"val/foo\" is not measured"}},
    {"three that only the plan finds",
     "train data.batch_size=4 trainer.slices=8 data=mnist data.dir=nowhere schedule=step "
     "schedule.step_size=0",
     {"too small for 8 slices", "data.dir: nowhere", "schedule.step_size"}},
    {"what to monitor, and parameters to freeze",
     "train callbacks.early_stopping.monitor=val/mae callbacks.model_checkpoint.monitor=val/mae "
     "optim.freeze=nope",
     {"early_stopping.monitor: \"val/mae\"", "model_checkpoint.monitor: \"val/mae\"", "\"nope\""}},
    {"three values for pictures",
     "train data=imagefolder data.dir=pics model=cnn data.resize=abc data.flip=2 data.normalize=foo",
     {"data.resize=abc", "data.flip=2", "data.normalize=foo"}},
    {"values for pictures, with a recipe that is none",
     "train data=imagefolder data.dir=pics model=cnn data.resize=0 data.augment=foo data.flip=2",
     {"data.resize=0", "data.augment", "data.flip=2"}},
    {"a mixture and a range, for pictures",
     "train data=imagefolder data.dir=pics model=cnn data.mixup=-1 data.scale=0.5 data.pad=x",
     {"data.mixup", "data.scale=0.5", "data.pad=x"}},
    {"what pictures need, and a mixture",
     "train data=imagefolder data.dir=pics model=cnn data.crop=8 data.pad=2 data.random_resized_crop=true "
     "data.mixup=0.0001",
     {"data.pad=2", "data.mixup=0.0001"}},
    {"weights and a checkpoint that are not there",
     "train trainer.slices=3 weights=nofile ckpt_path=nowhere",
     {"trainer.slices", "weights=nofile", "ckpt_path: nowhere"}},
    {"a checkpoint of another seed and batch",
     "train " SMALL " seed=7 data.batch_size=32 ckpt_path=run",
     {"seed=0, this run has seed=7", "data.batch_size=64"}},
    {"a checkpoint of another model, optimiser and seed",
     "train model=linear optim=sgd seed=7 ckpt_path=run",
     {"another model", "optim=adamw", "seed=0"}},
    {"text for a model of language", "train model=lm", {"data=text data.path=FILE"}},
    {"a flag, a checkpoint and a key",
     "train --foo ckpt_path=nowhere optim.lrr=1",
     {"--foo", "ckpt_path: nowhere does not exist", "optim.lrr"}},
    {"a flag and auto", "train --foo ckpt_path=auto optim.lrr=1 run.dir=run", {"--foo", "optim.lrr"}},
    {"a flag and a folder in use",
     "train --foo run.dir=run seed=x",
     {"--foo", "holds a run already", "seed: \"x\""}},
    {"a flag and the jobs of a sweep",
     "train -m --foo seed=1,x optim.lrr=1 data=mnist data.dir=nowhere",
     {"--foo", "seed: \"x\"", "optim.lrr", "data.dir: nowhere"}},
    {"flags and keys of test", "test run --foo --split x optim.lrr=1", {"--foo", "--split x", "optim.lrr"}},
    {"flags and keys of predict",
     "predict run --foo --limit x optim.lrr=1 seed=y",
     {"--foo", "--limit x", "optim.lrr", "seed: \"y\""}},
    {"a flag and no run to test", "test --foo nowhere", {"--foo", "nowhere is neither a run's folder"}},
    {"a flag and --cfg", "train --cfg job --foo seed=x", {"--foo", "seed: \"x\""}},
    {"a flag and keys", "train seed=x --foo model=cnnn", {"--foo", "seed: \"x\"", "did you mean cnn?"}},
    {"four values",
     "train trainer.devices=x optim.lr=abc trainer.kernels=foo trainer.precision=16",
     {"trainer.devices: \"x\"", "trainer.kernels: 'foo': no such level", "trainer.precision=16"}},
    {"choices and a value",
     "train optim=adm data=mnits trainer.devices=x",
     {"did you mean adam?", "did you mean mnist?", "trainer.devices: \"x\""}},
    {"three zeros",
     "train trainer.max_epochs=0 trainer.devices=0 trainer.limit_train_batches=0",
     {"trainer.max_epochs: 0", "trainer.devices: \"0\"", "trainer.limit_train_batches: \"0\" is neither"}},
    {"a key of no group's", "train callbacks.foo=1", {"unknown key \"callbacks.foo\" (cohort train --help all"}},
    {"a folder mistyped", "train data=mnist data.dirr=x", {"did you mean data.dir?"}},
    {"a schedule mistyped", "train schedule=cosin", {"did you mean cosine?"}},
    {"no steps", "train trainer.max_steps=0", {"trainer.max_steps: 0 is out of range"}},
    {"more than all", "train trainer.limit_train_batches=1.5", {"\"1.5\" is neither", "at most 1"}},
    {"kernels of another version",
     "train trainer.kernels=ref.99",
     {"trainer.kernels: 'ref.99': this program has ref."}},
    {"GPUs by number", "train trainer.devices=[0,1]", {"a list names GPUs; for 2 ranks: trainer.devices=2"}},
    /* keys of other programs */
    {"a GPU by key",
     "train trainer.accelerator=gpu",
     {"trainer.accelerator=gpu", "GPUs are not", "accelerator=cpu"}},
    {"a GPU by file", "train trainer=gpu", {"trainer=gpu", "GPUs are not", "trainer=cpu"}},
    {"half precision", "train trainer.precision=16-mixed", {"trainer.precision=16-mixed", "32-bit"}},
    {"hosts by key",
     "train trainer.num_nodes=2",
     {"trainer.num_nodes=2 needs a place where the hosts meet", "--rdzv-endpoint=HOST:29400"}},
    {"deepspeed", "train trainer=deepspeed", {"trainer=deepspeed", "ddp and fsdp"}},
    {"more than an epoch",
     "train data=digits trainer.val_check_interval=5000",
     {"val_check_interval=5000", "steps of an epoch", "check_val_every_n_epoch=null"}},
    {"a part of nothing",
     "train trainer.val_check_interval=0",
     {"val_check_interval", "a number of steps", "0.25"}},
    {"another model of timm",
     "train model.net.model_name=swin_tiny_patch4_window7_224",
     {"of timm's models there are", "vit_tiny_patch16_224"}},
    {"a name of timm with weights",
     "train model=vit_base_patch32_224.augreg_in21k",
     {"names pretrained weights", "weights=FILE.safetensors"}},
    {"a misspelt ViT", "train model=vit_base_patch32_22", {"did you mean vit_base_patch32_224?"}},
    {"patches that do not fill the picture",
     "train data=digits model=vit_base_patch32_224",
     {"patches of 32x32 pixels; the data has [1,8,8]", "data.resize=32x32"}},
    {"weights by key",
     "train model=cnn data=digits model.net.pretrained=True",
     {"model.pretrained=true", "no weights of model=cnn are known"}},
    {"a foreign optimiser",
     "train model.optimizer._target_=torch.optim.Lion",
     {"_target_=torch.optim.Lion", "--help optim"}},
    {"a foreign schedule",
     "train model.scheduler._target_=torch.optim.lr_scheduler.LambdaLR",
     {"lr_scheduler.LambdaLR", "--help schedule"}},
    {"a search", "train hparams_search=optuna", {"hparams_search=optuna", "searches come later", "-m optim.lr="}},
    {"no training", "train train=false", {"train=false", "cohort test"}},
    {"no such callbacks", "train callbacks=swa", {"no callbacks \"swa\"", "early_stopping"}},
    {"no such logger", "train logger=papyrus", {"no logger \"papyrus\"", "csv"}},
    /* recipes */
    {"no such schedule", "train schedule=cosin", {"no schedule \"cosin\"", "cosine"}},
    {"a key of another schedule",
     "train schedule=cosine schedule.step_size=3",
     {"schedule=cosine", "step_size", "step has"}},
    {"nesterov without momentum",
     "train optim=sgd optim.nesterov=true",
     {"optim.nesterov=true needs a momentum"}},
    {"a plateau of nothing", "train schedule=plateau schedule.monitor=null", {"schedule.monitor=null"}},
    {"a name without room",
     "train 'callbacks.model_checkpoint.filename="
     "\"a-name-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-"
     "on-{step}\"'",
     {"model_checkpoint.filename", "at most 95 characters"}},
    {"a rate of nothing", "train optim.lr_groups=nosuch.*:10", {"nosuch.*"}},
    {"a factor that is none", "train 'optim.lr_groups=\"fc1.*:fast\"'", {"optim.lr_groups", "pattern:factor"}},
    {"nothing to freeze", "train 'optim.freeze=nosuch.*'", {"nosuch.*"}},
    {"all frozen", "train 'optim.freeze=*'", {"optim.freeze"}},
    {"a time that is none", "train trainer.max_time=soon", {"trainer.max_time", "soon"}},
    {"too much smoothing", "train loss.label_smoothing=1", {"label_smoothing", "out of range"}},
    /* pictures */
    {"pictures nowhere", "train data=imagefolder model=resnet18", {"data.dir="}},
    {"a folder of no pictures", "train data=imagefolder data.dir=cfg model=resnet18", {"cfg"}},
    {"a crop that is none",
     "train data=imagefolder data.dir=pics model=resnet18 data.crop=wide",
     {"data.crop", "wide"}},
    {"a flip of two", "train data=imagefolder data.dir=pics model=resnet18 data.flip=2", {"data.flip", "2"}},
    {"a scale upside down",
     "train data=imagefolder data.dir=pics model=resnet18 data.scale=1:0.5",
     {"data.scale"}},
    {"an augmentation that is none",
     "train data=imagefolder data.dir=pics data.augment=imagnet",
     {"data.augment", "imagnet"}},
    {"tiny imagenet is not there",
     "train experiment=tinyimagenet",
     {"data.dir: data/tiny-imagenet-200", "No such file"}},
    {"cifar's files are not there", "train experiment=cifar", {"data.dir: data/cifar10", "No such file"}},
    /* keys, values, groups */
    {"unknown key", "train trainer.max_epoch=3", {"trainer.max_epoch", "did you mean trainer.max_epochs?"}},
    {"wrong type", "train trainer.max_epochs=three", {"trainer.max_epochs", "three", "whole number"}},
    {"out of range", "train data.batch_size=0", {"data.batch_size", "0", "allowed: 1 to 1048576"}},
    {"unknown choice", "train model=resnt", {"model \"resnt\"", "linear lm mlp"}},
    {"empty choice", "train data=", {"data \"\"", "cifar10 cifar100 cinic10 digits fake"}},
    {"key of another model", "train model=linear model.width=3", {"model=linear", "width", "(model=cnn, "}},
    {"no such experiment", "train experiment=demmo", {"experiment \"demmo\"", "demo"}},
    {"experiment file missing", "train experiment=./no.yaml", {"./no.yaml", "No such file"}},
    {"no configuration folder", "train --config-dir nowhere", {"nowhere", "not there"}},
    {"YAML that does not parse", "train --config-dir cfg experiment=open", {"cfg/experiment/open.yaml:2"}},
    {"YAML of unknown keys", "train --config-dir cfg experiment=typo", {"typo.yaml:3", "optim.lrr", "optim.lr?"}},
    {"no ranks", "train trainer.devices=0", {"trainer.devices", "\"0\"", "auto or a number from 1"}},
    {"ranks in words", "train trainer.devices=abc", {"trainer.devices", "\"abc\"", "auto or a number from 1"}},
    {"half a batch", "train trainer.limit_train_batches=2.5", {"limit_train_batches", "2.5", "fraction"}},
    {"unknown kernels", "train trainer.kernels=sse9", {"sse9", "auto, avx"}},
    {"task that is no name", "train task_name=a/b", {"task_name \"a/b\""}},
    /* batch and memory */
    {"slices of 3", "train trainer.slices=3", {"trainer.slices", "3", "power of two"}},
    {"batch below slices",
     "train data.batch_size=4 trainer.slices=8",
     {"data.batch_size=4", "8 slices", "take data.batch_size=8"}},
    {"batch norm needs two",
     "train model=cnn data.batch_size=4 trainer.slices=4",
     {"batch statistics", "take data.batch_size=8"}},
    {"more memory than there is",
     "train model=mlp model.hidden=65536 model.layers=8",
     {"MiB", "are free", "smaller model"}},
    /* data */
    {"text without a path", "train data=text model=lm", {"data.path=FILE"}},
    {"missing text", "train data=text data.path=no.txt model=lm", {"data.path", "no.txt", "No such file"}},
    {"truncated text", "train data=text data.path=cut.txt model=lm", {"cut.txt", "UTF-8", "offset 8"}},
    {"too short a text", "train data=text data.path=one.txt model=lm", {"one.txt", "at least 3"}},
    {"an image model on text", "train data=text data.path=$REPO/tests/data/verse.txt model=cnn", {"model=lm"}},
    /* run folders */
    {"a folder below a file", "train run.dir=file/run", {"file", "choose another with run.dir="}},
    {"a file as folder", "train run.dir=file", {"file", "choose another with run.dir="}},
    /* checkpoints */
    {"no such checkpoint", "train ckpt_path=nowhere", {"ckpt_path", "nowhere", "does not exist"}},
    {"no checkpoint at all", "train ckpt_path=cfg", {"cfg", "neither a checkpoint", "nor a run folder"}},
    {"another model",
     "train " SMALL " model.hidden=8 ckpt_path=run",
     {"another model: tensor fc1.bias is [16] there, [8] here", "model=mlp"}},
    {"another kind of model", "train model=linear ckpt_path=run", {"another model: tensor", "model=mlp"}},
    {"another optimiser", "train " SMALL " optim=sgd ckpt_path=run", {"optim=adamw", "optim=sgd"}},
    {"another seed", "train " SMALL " seed=5 ckpt_path=run", {"seed=0", "seed=5", "give the same"}},
    {"another batch", "train " SMALL " data.batch_size=32 ckpt_path=run", {"data.batch_size=64", "32"}},
    {"other kernels", "train " SMALL " trainer.kernels=ref ckpt_path=run_far", {"far.", "ref.", "kernels=far"}},
    {"fewer steps than done",
     "train " SMALL " trainer.max_steps=3 ckpt_path=run",
     {"stands at step 10", "past the 3", "trainer.max_steps"}},
    {"torn checkpoint", "train " SMALL " ckpt_path=torn", {"torn", "model.safetensors", "cohort ckpt ls"}},
    {"none is good", "train " SMALL " run.dir=all_torn ckpt_path=auto", {"ckpt_path=auto", "none of its"}},
    {"test of nothing", "test", {"test needs ckpt_path="}},
    {"test of a word that is nothing", "test nowhere", {"nowhere is neither a run's folder"}},
    {"test of what is not there", "test ckpt_path=nowhere", {"nowhere", "does not exist"}},
    {"test of a split that is none", "test ckpt_path=run --split train", {"--split train", "val and test"}},
    {"test of another model", "test ckpt_path=run model.hidden=8", {"tensor fc1.bias is [16] there, [8] here"}},
    {"half a sample", "predict ckpt_path=run --limit 2.5", {"--limit 2.5", "number of samples"}},
    {"a mistyped flag", "predict ckpt_path=run --limt 2", {"--limt", "did you mean --limit?"}},
    {"ckpt what", "ckpt lz run", {"\"lz\"", "did you mean ls?"}},
    {"ckpt ls of nothing", "ckpt ls nowhere", {"nowhere", "no such folder"}},
    {"ckpt hash of nothing", "ckpt hash nowhere", {"nowhere", "does not exist"}},
    {"ckpt verify without a path", "ckpt verify", {"ckpt verify takes"}},
    {"ps of something", "ps 12", {"\"12\""}},
    {"stop of nothing", "stop", {"a pid, a run folder or --all"}},
    {"stop of what is no run", "stop 1", {"no live run is \"1\""}},
    {"unknown bench", "bench samenes", {"samenes", "did you mean sameness?"}},
};

static void put_file(const char *path, const char *text)
{
    CHECK_OK(co_fs_write_atomic(path, text, strlen(text)));
}

static void prepare(void)
{
    CHECK_OK(co_fs_mkdirs("cfg/experiment"));
    CHECK_OK(co_fs_mkdirs("pairs"));
    put_file("pairs/empty.tsv", "");
    put_file("pairs/commas.tsv", "Hello,Ciao\nWell,Bene\n");
    put_file("pairs/good.tsv", "Hello\tCiao\nWell\tBene\n");
    put_file("cfg/experiment/open.yaml", "seed: 1\noptim: ]\n");
    put_file("cfg/experiment/typo.yaml", "seed: 1\noptim:\n  lrr: 2\n");
    put_file("cut.txt", "one\ntwo\n\xe2\x82");
    put_file("one.txt", "one line\n");
    succeeds("mkdir -p pics/a pics/b && for i in 1 2 3 4 5; do cp $REPO/tests/data/pictures/png-rgb.png "
             "pics/a/$i.png; "
             "cp $REPO/tests/data/pictures/png-rgb.png pics/b/$i.png; done");
    put_file("file", "");
    succeeds("$COHORT train " SMALL " trainer.max_steps=10 trainer.devices=1 run.dir=run");
    succeeds("$COHORT train " SMALL
             " trainer.max_steps=1 trainer.devices=1 trainer.kernels=far run.dir=run_far");
    succeeds("cp -rL run/checkpoints/last torn && truncate -s -10 torn/model.safetensors");
    succeeds("cp -r run all_torn && truncate -s -1 all_torn/checkpoints/*/model.safetensors");
    char dir[4096];
    CHECK(getcwd(dir, sizeof dir), "no working directory");
    setenv("XDG_RUNTIME_DIR", dir, 1); /* no other test's runs */
    succeeds("$COHORT ps");
}

/* Every path with its size. */
static char *listing(void)
{
    test_run r = test_sh("find . ! -name '.out-*' ! -name . -printf '%%p %%s\\n' | sort");

    CHECK(r.status == 0, "%s", r.out);
    return r.out;
}

TEST(every_wrong_line_is_refused_at_once_by_name_and_leaves_nothing_behind)
{
    double slowest = 0;

    prepare();
    char *before = listing();
    for (size_t i = 0; i < CO_COUNT(table); i++) {
        const struct wrong *w = &table[i];
        test_run r = test_sh("exec $COHORT %s", w->line);
        CHECK(r.status == 2, "%s: `%s` exits with %d\n%s", w->what, w->line, r.status, r.out);
        for (int k = 0; k < 3 && w->says[k]; k++)
            CHECK(test_contains(r.out, w->says[k]), "%s: `%s` does not say \"%s\":\n%s", w->what, w->line,
                  w->says[k], r.out);
        CHECK(r.secs < 1, "%s: `%s` took %g s", w->what, w->line, r.secs);
        slowest = r.secs > slowest ? r.secs : slowest;
        char *after = listing();
        CHECK(strcmp(before, after) == 0, "%s: `%s` changed the folder from\n%sto\n%s", w->what, w->line,
              before, after);
        free(after);
        free(r.out);
    }
    test_note("%zu wrong lines, the slowest took %.0f ms", CO_COUNT(table), slowest * 1e3);
    free(before);
}

/* What follows from a mistake is not reported as another one. */
TEST(a_mistake_brings_no_other_that_only_follows_from_it)
{
    static const char *const lines[][2] = {
        {"train data=mnist data.dirr=x", "needs data.dir"},
        {"train experiment=cifr data=mnist", "needs data.dir"},
        {"train data=mnist data.dir", "needs data.dir"},
        {"train modle=lm data=text data.path=$REPO/tests/data/verse.txt", "model=mlp"},
        {"train trainer.slicess=1 data.batch_size=4", "too small"},
        {"test nowhere model.depth=3", "model.depth"},
    };

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        test_run r = test_sh("$COHORT %s", lines[i][0]);
        CHECK(r.status == 2 && !test_contains(r.out, lines[i][1]), "%s: %d %s", lines[i][0], r.status, r.out);
        free(r.out);
    }
}

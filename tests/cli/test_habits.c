/* Command lines that people type from habit: each line of the table gives the same configuration as the line
 * in our own words, with a note. */
#include "cli/runs.h"

#include "cli/habits_int.h"

struct habit {
    const char *typed, *ours; /* after `$COHORT train` */
    const char *says[3];
};

static const struct habit table[] = {
    /* pytorch/examples' imagenet main.py, and train.py made of it */
    {"-a resnet18 data=digits", "model=resnet18 data=digits", {"-a resnet18 -> model=resnet18"}},
    {"--arch=cnn data=digits", "model=cnn data=digits", {"--arch=cnn -> model=cnn"}},
    {"-b 32",
     "data.batch_size_per_rank=32",
     {"-b 32 -> data.batch_size_per_rank=32 (per process: a step's batch"}},
    {"-b32 -j2", "data.batch_size_per_rank=32 data.workers=2", {"-b32 -> ", "-j2 -> data.workers=2"}},
    {"--batch_size 8", "data.batch_size_per_rank=8", {"--batch_size 8 -> data.batch_size_per_rank=8"}},
    {"-b 256 --multiprocessing-distributed --world-size 1 --rank 0 --dist-url tcp://127.0.0.1:1 "
     "--dist-backend nccl",
     "data.batch_size=256",
     {"-b 256 -> data.batch_size=256 (of all ranks together", "--dist-backend nccl: not needed"}},
    {"--epochs 3 --lr 0.05 --wd 1e-4 optim=sgd --momentum 0.9",
     "trainer.max_epochs=3 optim.lr=0.05 optim.weight_decay=1e-4 optim=sgd optim.momentum=0.9",
     {"--epochs 3 -> trainer.max_epochs=3", "--lr 0.05 -> optim.lr=0.05",
      "--wd 1e-4 -> optim.weight_decay=1e-4"}},
    {"--learning-rate=0.1 --weight-decay=0", "optim.lr=0.1 optim.weight_decay=0", {"--learning-rate=0.1 -> "}},
    {"-p 20 --seed 7", "log_every=20 seed=7", {"-p 20 -> log_every=20", "--seed 7 -> seed=7"}},
    {"--start-epoch 0 --no-accel", "", {"--no-accel: no effect"}},
    {"--resume 'my run'", "'ckpt_path=my run'", {"--resume my run -> "}},
    {"--checkpoint-file /tmp/c.pth.tar --local_rank=0 --wandb_project p --wandb_run_group=g",
     "logger.wandb.enabled=true logger.wandb.project=p logger.wandb.group=g",
     {"--checkpoint-file /tmp/c.pth.tar: ", "--local_rank=0: not needed",
      "--wandb_project p -> logger.wandb.project=p"}},
    /* the transformer's train.py */
    {"--num_epochs 5 --lr 1e-3 --model_folder weights --preload latest --wandb_group exp1",
     "experiment=en_it trainer.max_epochs=5 optim.lr=1e-3 run.dir=weights ckpt_path=auto "
     "logger.wandb.group=exp1 logger.wandb.enabled=true",
     {"--preload latest -> ckpt_path=auto", "--model_folder weights -> run.dir=weights",
      "experiment=en_it: the recipe of that program"}},
    {"--lang_src it --lang_tgt en --tokenizer_file 'tokenizer_{0}.json' --seq_len 100 --d_model 64",
     "experiment=en_it data.lang_src=it data.lang_tgt=en data.max_len=100 model.d_model=64",
     {"--lang_src it -> data.lang_src=it", "--tokenizer_file tokenizer_{0}.json: the run writes"}},
    {"--nproc_per_node=2 --nnodes=1 --rdzv_id=456 --rdzv_backend=c10d --rdzv_endpoint=127.0.0.1:48123 "
     "train.py --batch_size 8 --model_folder weights",
     "experiment=en_it trainer.devices=2 data.batch_size_per_rank=8 run.dir=weights",
     {"train.py: not run", "--batch_size 8 -> data.batch_size_per_rank=8"}},
    {"--preload '' --model_basename tmodel_", "", {"--model_basename tmodel_: "}},
    {"--seq_len 32 --d_model 16 data=text model=lm",
     "data.max_len=32 model.d_model=16 data=text model=lm",
     {"-> data.max_len=32", "-> model.d_model=16"}},
    /* torchrun and the DDP tutorial */
    {"--standalone --nproc_per_node=4 multigpu_torchrun.py 50 10",
     "experiment=toy trainer.devices=4 trainer.max_epochs=50 callbacks.model_checkpoint.every_n_epochs=10",
     {"multigpu_torchrun.py: the tutorial's script is not run",
      "10 -> callbacks.model_checkpoint.every_n_epochs=10"}},
    {"--nproc-per-node auto --nnodes=1:1 --node_rank 0",
     "trainer.devices=auto",
     {"--nproc-per-node auto -> trainer.devices=auto"}},
    {"single_gpu.py 20 5 --batch_size 16",
     "experiment=toy trainer.devices=1 trainer.max_epochs=20 callbacks.model_checkpoint.every_n_epochs=5 "
     "data.batch_size_per_rank=16",
     {"single_gpu.py -> trainer.devices=1", "experiment=toy: the recipe"}},
    {"ddp/multigpu.py 20 5", "experiment=toy 20 5", {"ddp/multigpu.py: the tutorial's script is not run"}},
    {"--nproc_per_node=2 --nnodes=1 --rdzv_id=456 --rdzv_backend=c10d --rdzv_endpoint=127.0.0.1:48123 "
     "multinode.py 50 10 --batch_size 8",
     "experiment=toy trainer.devices=2 trainer.max_epochs=50 callbacks.model_checkpoint.every_n_epochs=10 "
     "data.batch_size_per_rank=8",
     {"--nproc_per_node=2 -> trainer.devices=2"}},
    {"--nproc_per_node=2 train.py --batch_size 8 data=digits",
     "trainer.devices=2 data.batch_size_per_rank=8 data=digits",
     {"train.py: not run"}},
    {"--master_addr 127.0.0.1 --master_port 1 --max_restarts=3 --log_dir x --tee 3 -r 3",
     "",
     {"--max_restarts=3: ", "--tee 3: ", "--log_dir x: "}},
    /* Lightning and its template */
    {"trainer.accelerator=cpu trainer.precision=32-true trainer.deterministic=true trainer.benchmark=false",
     "",
     {0}},
    {"trainer.sync_batchnorm=True trainer.num_sanity_val_steps=0",
     "",
     {"trainer.sync_batchnorm=True: not needed"}},
    {"trainer.enable_progress_bar=false",
     "console=plain",
     {"trainer.enable_progress_bar=false -> console=plain"}},
    {"trainer.enable_checkpointing=false", "callbacks.model_checkpoint.enabled=false", {"-> callbacks."}},
    {"trainer.devices=-1 trainer.strategy=ddp_find_unused_parameters_false", "trainer.devices=auto", {"-1 -> "}},
    {"trainer=ddp_spawn", "trainer=ddp", {"trainer=ddp_spawn -> trainer=ddp"}},
    {"trainer=ddp_sim", "trainer=ddp_sim trainer.devices=2 trainer.strategy=ddp", {0}},
    {"model.net.model_name=resnet34 datamodule=fake_images",
     "model=resnet34 data=fake_images",
     {"model.net.model_name=resnet34 -> model=resnet34", "datamodule=fake_images -> data=fake_images"}},
    {"model.optimizer._target_=torch.optim.SGD model.optimizer.momentum=0.5 model.optimizer.lr=0.1",
     "optim=sgd optim.momentum=0.5 optim.lr=0.1",
     {"-> optim=sgd", "-> optim.momentum=0.5"}},
    {"model.scheduler._target_=torch.optim.lr_scheduler.ReduceLROnPlateau model.scheduler.patience=7",
     "schedule=plateau schedule.patience=7",
     {"-> schedule=plateau"}},
    {"model={net:{model_name:cnn,num_classes:10},optimizer:{lr:0.5}}",
     "model=cnn optim.lr=0.5",
     {"-> model=cnn"}},
    {"datamodule.batch_size=384 datamodule.num_workers=2",
     "data.batch_size=384 data.workers=2",
     {"datamodule.batch_size=384: the batch of all ranks together here"}},
    {"logger=tensorboard logger.tensorboard.save_dir=/data/runs logger.tensorboard.log_graph=false",
     "logger=tensorboard logger.tensorboard.dir=/data/runs",
     {"logger.tensorboard.save_dir=/data/runs -> logger.tensorboard.dir=/data/runs"}},
    {"'logger=[csv,wandb]' logger.wandb.project=x logger.wandb.log_model=false",
     "'logger=[csv,wandb]' logger.wandb.project=x",
     {"logger.wandb.log_model=false: means nothing here"}},
    {"callbacks=none", "callbacks=none callbacks.model_checkpoint.enabled=false", {0}},
    {"'callbacks=[default,early_stopping]'",
     "'callbacks=[default,early_stopping]' callbacks.early_stopping.monitor=val/loss "
     "callbacks.early_stopping.patience=10",
     {0}},
    {"extras.print_config=false '+tags=[a,b]' train=True", "", {"tags=[a,b]: kept in overrides.yaml"}},
    {"paths.output_dir=here", "run.dir=here", {"-> run.dir=here"}},
    {"ckpt_path=last data=digits", "ckpt_path=auto data=digits", {"ckpt_path=last -> ckpt_path=auto"}},
    /* the batch given last is the batch */
    {"experiment=toy data.batch_size=64", "experiment=toy data.batch_size_per_rank=0 data.batch_size=64", {0}},
    {"experiment=toy -b 16", "experiment=toy data.batch_size_per_rank=16", {0}},
};

/* Standard output of a line that must succeed; *told is what it says on standard error. The test's. */
static char *configuration(const char *words, char **told)
{
    test_run r = test_sh("$COHORT train --cfg job %s 2>told", words);
    size_t len;

    CHECK_OK(co_fs_read(told, &len, "told", 1 << 20));
    CHECK(r.status == 0, "`%s` exits with %d: %s", words, r.status, *told);
    return r.out;
}

TEST(a_script_of_ones_own_without_data_is_refused_with_the_line_that_runs_it)
{
    static const char *const lines[][2] = {
        {"--nproc_per_node=2 --nnodes=1 --rdzv_id=456 train.py --batch_size 8",
         "/cohort launch --nproc_per_node=2 --nnodes=1 --rdzv_id=456 train.py --batch_size 8\n"},
        {"'my dir/run.py' model=cnn 50 10", "/cohort launch 'my dir/run.py' model=cnn 50 10\n"},
        {"train.py --batch_size 8", "to train the transformer that translates, add experiment=en_it"},
        {"main.py", "main.py: `cohort train` runs no script"}};

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        test_run r = test_sh("$COHORT train %s", lines[i][0]);
        CHECK(r.status == 2 && test_contains(r.out, lines[i][1]), "%s: %d: %s", lines[i][0], r.status, r.out);
        CHECK(strncmp(r.out, "cohort: ", 8) == 0, "something else was said first: %s", r.out);
        CHECK(!co_fs_exists("logs"), "something was trained");
        free(r.out);
    }
}

TEST(each_habit_is_the_line_in_our_own_words_and_says_what_it_became)
{
    char *said, *nothing;

    for (size_t i = 0; i < CO_COUNT(table); i++) {
        const struct habit *h = &table[i];
        char *theirs = configuration(h->typed, &said), *ours = configuration(h->ours, &nothing);
        char *t = theirs, *o = ours;
        while (*t && *t == *o)
            t++, o++;
        CHECK(!*t && !*o, "`%s` has \"%.60s\" where `%s` has \"%.60s\"", h->typed, t, h->ours, o);
        for (int k = 0; k < 3 && h->says[k]; k++)
            CHECK(test_contains(said, h->says[k]), "`%s` does not say \"%s\":\n%s", h->typed, h->says[k], said);
        free(theirs);
        free(ours);
        co_free(said);
        co_free(nothing);
    }
    test_note("%zu lines", CO_COUNT(table));
}

TEST(a_habit_is_said_once_and_our_own_words_say_nothing)
{
    char *said;
    char *out = configuration("-b 4 -b 4 trainer.sync_batchnorm=true trainer.sync_batchnorm=true", &said);
    char *first = strstr(said, "-b 4 -> ");
    CHECK(first && !strstr(first + 1, "-b 4 -> "), "%s", said);
    first = strstr(said, "trainer.sync_batchnorm=true: ");
    CHECK(first && !strstr(first + 1, "trainer.sync_batchnorm=true: "), "%s", said);
    free(out);
    co_free(said);
    out = configuration("data.batch_size=32 trainer=ddp callbacks=default logger=csv seed=3", &said);
    CHECK(!*said, "said: %s", said);
    free(out);
    co_free(said);
}

TEST(habits_in_a_file_are_those_of_words_and_are_refused_with_their_line)
{
    static const char good[] =
        "model:\n  net:\n    model_name: cnn\n  optimizer:\n    _target_: torch.optim.SGD\n    "
        "_partial_: true\n    lr: 0.5\ntrainer:\n  accelerator: cpu\n";
    static const char bad[] = "seed: 1\ntrainer:\n  accelerator: gpu\n";
    char *said, *nothing;

    CHECK_OK(co_fs_mkdirs("configs/experiment"));
    CHECK_OK(co_fs_write_atomic("configs/experiment/theirs.yaml", good, strlen(good)));
    CHECK_OK(co_fs_write_atomic("configs/experiment/gpu.yaml", bad, strlen(bad)));
    char *theirs = configuration("experiment=theirs", &said);
    char *ours = configuration("model=cnn optim=sgd optim.lr=0.5", &nothing);
    CHECK(strcmp(theirs, ours) == 0, "%snot\n%s", theirs, ours);
    free(theirs);
    free(ours);
    co_free(said);
    co_free(nothing);
    char *chosen = configuration("experiment=theirs model=mlp", &said);
    CHECK(test_contains(chosen, "name: mlp"), "a word does not win over a file: %s", chosen);
    free(chosen);
    co_free(said);
    test_run r = test_sh("$COHORT train experiment=gpu");
    CHECK(r.status == 2 &&
              test_contains(r.out, "configs/experiment/gpu.yaml:3: trainer.accelerator=gpu: GPUs"),
          "%s", r.out);
    free(r.out);
}

TEST(what_launchers_leave_in_the_environment_says_which_hosts_train)
{
    static const struct {
        const char *env, *says;
    } rows[] = {
        {"WORLD_SIZE=2 NODE_RANK=1",
         "NODE_RANK=1 and WORLD_SIZE=2 are in the environment, but not MASTER_ADDR"},
        {"RANK=3 WORLD_SIZE=4", "RANK=3 and WORLD_SIZE=4 are in the environment, but not MASTER_ADDR"},
        {"MASTER_ADDR=tcp://10.0.0.1:7 WORLD_SIZE=2 NODE_RANK=1",
         "NODE_RANK and WORLD_SIZE of the environment: 2 hosts, this is 1 ("}};

    test_run r = test_sh(
        "MASTER_PORT=29501 MASTER_ADDR=127.0.0.1 WORLD_SIZE=1 NODE_RANK=0 $COHORT plan trainer.num_nodes=1 "
        "2>&1 >/dev/null");
    CHECK(r.status == 0 && !*r.out, "one host says: %s", r.out);
    free(r.out);
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        r = test_sh("%s $COHORT train data=digits", rows[i].env);
        CHECK(r.status == 2 && test_contains(r.out, rows[i].says), "%s: %d %s", rows[i].env, r.status, r.out);
        free(r.out);
        r = test_sh("%s $COHORT plan --standalone data=digits", rows[i].env);
        CHECK(r.status == 0 && !test_contains(r.out, "hosts"), "%s: %d %s", rows[i].env, r.status, r.out);
        free(r.out);
    }
}

TEST(no_row_is_for_a_key_that_exists_or_behind_one_that_fits_all)
{
    const co_conf_spec *spec = app_conf_spec(NULL);

    for (const co_conf_habit *row = habit_keys; row->keys; row++) {
        bool single = !strchr(row->keys, ' ') && !strchr(row->keys, '*');
        CHECK(!single || row->values || !co_conf_knows(spec, row->keys), "%s exists: its row is never asked",
              row->keys);
        CHECK(row->act != CO_HABIT_REFUSED || row->says, "%s is refused without a word", row->keys);
        for (const co_conf_habit *before = habit_keys; before < row; before++)
            CHECK(before->values || strcmp(before->keys, row->keys) != 0, "%s: a row before it fits all",
                  row->keys);
    }
}

TEST(every_row_ends_at_a_key_that_exists)
{
    const co_conf_spec *spec = app_conf_spec(NULL);
    const co_conf_habit *const tables[] = {habit_flags, habit_keys};

    for (size_t t = 0; t < CO_COUNT(tables); t++)
        for (const co_conf_habit *row = tables[t]; row->keys; row++) {
            char key[96] = "";
            snprintf(key, sizeof key, "%.*s", (int)strcspn(row->becomes ? row->becomes : "", "="),
                     row->becomes ? row->becomes : "");
            CHECK(!row->becomes || strchr(key, '*') || co_conf_knows(spec, key),
                  "%s becomes %s, which is no key", row->keys, key);
        }
}

TEST(test_takes_the_habits_of_train_without_its_recipes)
{
    succeeds("$COHORT train " SMALL " trainer.max_steps=2 run.dir=r");
    test_run r = test_sh("$COHORT test --resume r -b 32 -j 1");
    CHECK(r.status == 0 && test_contains(r.out, "--resume r -> ckpt_path=r") &&
              test_contains(r.out, "test loss"),
          "%d %s", r.status, r.out);
    free(r.out);
}

TEST(help_is_for_a_command_a_bench_a_group_and_the_habits)
{
    static const char *const lines[][3] = {
        {"help train", "cohort train experiment=demo", "--config-dir FOLDER"},
        {"help ckpt", "cohort ckpt ls", NULL},
        {"bench kills --help", "kills", "--kills N"},
        {"bench sameness -h", "--other PROGRAM", NULL},
        {"train --help", "torchrun", "--help habits"},
        {"train --help habits", "--nproc-per-node auto|cpu -> trainer.devices=auto", "model.net.model_name"},
        {"train --help callbacks", "callbacks=none", "callbacks.early_stopping.patience"},
        {"train --help logger", "logger=csv", NULL},
    };

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        test_run r = test_sh("$COHORT %s", lines[i][0]);
        CHECK(r.status == 0, "`%s` exits with %d: %s", lines[i][0], r.status, r.out);
        for (int k = 1; k < 3 && lines[i][k]; k++)
            CHECK(test_contains(r.out, lines[i][k]), "`%s` does not say \"%s\":\n%s", lines[i][0],
                  lines[i][k], r.out);
        free(r.out);
    }
    test_run r = test_sh("$COHORT help trian");
    CHECK(r.status == 2 && test_contains(r.out, "did you mean train?"), "%d %s", r.status, r.out);
    free(r.out);
    CHECK(!co_fs_exists("logs"), "something was made");
    CHECK_OK(co_fs_mkdirs("data"));
    r = test_sh("$COHORT train data --help");
    CHECK(r.status == 0 && test_contains(r.out, "data=digits"), "a folder, not the group: %s", r.out);
    free(r.out);
}

"""Composes lines of overrides with hydra-core (1.3) over tests/golden/hydra and writes hydra.json: for each line its
words and the composed keys, or that it is refused. Run in a Python that has hydra-core: python make_hydra.py"""
import json
import os
import pathlib

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

HERE = pathlib.Path(__file__).resolve().parent
LINES = [
    [], ["seed=7"], ["seed=1_000"], ["seed=-3"], ["seed=+4"], ["ratio=1e-3"], ["ratio=.5"], ["ratio=2."],
    ["ratio=inf"], ["flag=FALSE"], ["flag=true"], ["++seed=3"], ["seed=1", "seed=2"],
    ["task_name="], ["task_name=''"], ["task_name=null"], ["task_name='null'"], ["task_name=NULL"],
    ["task_name=a b"], ["task_name= a b "], ["task_name='  a '"], ["task_name=\"it's\""],
    ["task_name='it\\'s'"], ["task_name='c:\\\\'"], ["task_name='a\\b'"], ["task_name=a\\,b"],
    ["task_name=\\(x\\)\\=\\[\\]"], ["task_name=1:2"], ["task_name=10Gb"], ["task_name=a/b-c.d+e%f*g@h?i|j"],
    ["task_name=a$b"], ["task_name='x=[1,2]'"], ["task_name=null x"], ["task_name=str(x)"],
    ["seed=int(3.7)"], ["seed=int('12')"], ["ratio=float(2)"], ["flag=bool(0)"],
    ["tags=[1,2,[a,b]]"], ["tags=[ x , 'y z' ]"], ["tags=[]"], ["tags=['1',1,true,null,1.5]"], ["tags=[a\\,b,c]"],
    ["tags=sort([3,1,2])"], ["tags=[{a:1,b:[c]}]"], ["tags=str([1,true])"],
    ["run={dir:x}"], ["trainer.sub={depth:4,label:z}"], ["run={}"], ["trainer.sub={label: a b}"],
    ["model=lm", "model.heads=8"], ["optim=adamw"], ["model=big"], ["model=big", "model.hidden=3"],
    ["trainer=deep"], ["trainer=first"], ["trainer=maybe"], ["trainer=deep", "trainer/sub=large"],
    ["trainer=fsdp", "trainer.devices=5"], ["callbacks=a"], ["callbacks=[a,b]"], ["callbacks=[b]"],
    ["experiment=x"], ["experiment=y"], ["experiment=z"], ["experiment=w"],
    ["experiment=x", "trainer=ddp", "seed=6"], ["experiment=z", "seed=9", "model=lm"],
    ["task_name=${model.name}"], ["run.dir=${task_name}/${seed}"], ["note='${model.name} x'"],
    ["note=\\${seed}"], ["note=${oc.env:COHORT_GOLDEN}"], ["note=${oc.env:COHORT_NOT_THERE,'d e'}"],
    ["note=${oc.env:COHORT_NOT_THERE,null}"], ["trainer.sub.label=${..strategy}"], ["model.hidden=${trainer.max_epochs}"],
    ["note=${oc.select:nothing,7}"], ["note='${oc.env:${task_name},x}'"], ["note=${note}"], ["note=${seeed}"],
    ["note=${nope:1}"], ["note=${oc.env:COHORT_NOT_THERE}"], ["seed=${task_name}", "task_name=${seed}"],
    ["sead=1"], ["model.hiden=1"], ["model=nothing"], ["trainer=nothing"], ["task_name=a,b"], ["seed=range(1,3)"],
    ["task_name=choice(a,b)"], ["task_name='x"], ["task_name=x'y'"], ["task_name=a=b"], ["task_name=(x)"], ["tags=[a"],
    ["tags=[a,,b]"], ["run={dir:1"], ["task_name=a#b"], ["task_name=foo(1)"], ["=x"], ["seed"], ["trainer/sub=large"],
    ["experiment=nothing"], ["~nothing"], ["~seed=9"], ["flag=bool('yes')"], ["tags=[1,]"], ["model@x=mlp"],
]


def flat(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, prefix + key + ".")
        else:
            yield prefix + key, str(value) if value in (float("inf"),) else value


def answer(words):
    try:
        cfg = compose("config", overrides=words)
        return {"words": words, "keys": dict(flat(OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)))}
    except Exception as e:
        return {"words": words, "refused": type(e).__name__}


def main():
    os.environ["COHORT_GOLDEN"] = "from outside"
    os.environ.pop("COHORT_NOT_THERE", None)
    with initialize_config_dir(str(HERE / "hydra"), version_base="1.3"):
        lines = [answer(words) for words in LINES]
    text = ",\n".join(json.dumps(line) for line in lines)
    (HERE / "hydra.json").write_text("[\n" + text + "\n]\n")


main()

/* sets.c -- the data sets that `cohort data get` knows: addresses, sizes, checksums. A new set is a row.
 *
 * Checksums are those that the publishers state. `published` is false where the publisher states none, and
 * the one here is the one that public loaders of the set compare with. Where none is known at all, the
 * structure is checked.
 */
#include "fetch/fetch.h"

#include <string.h>

#define GROUPLENS       "https://files.grouplens.org/datasets/movielens/"
#define GROUPLENS_TERMS "research use; cite Harper and Konstan, 2015 (README in the folder)"
#define MNIST_FILE(file, bytes, sum)                                                                         \
    {                                                                                                        \
        .name = file,                                                                                        \
        .urls = {"https://ossci-datasets.s3.amazonaws.com/mnist/" file,                                      \
                 "https://storage.googleapis.com/cvdf-datasets/mnist/" file,                                 \
                 "http://yann.lecun.com/exdb/mnist/" file},                                                  \
        .size = bytes, .md5 = sum                                                                            \
    }

const co_set co_sets[] = {
    {.name = "cifar10",
     .title = "CIFAR-10",
     .folder = "cifar-10-batches-bin",
     .use = "data=cifar10",
     .layout = "cifar10",
     .needs = {"data_batch_1.bin", "data_batch_5.bin", "test_batch.bin", "batches.meta.txt"},
     .unpack = true,
     .unpacked = 184380061,
     .terms = "cite Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
     .files = {{.name = "cifar-10-binary.tar.gz",
                .urls = {"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                         "https://cave.cs.toronto.edu/kriz/cifar-10-binary.tar.gz"},
                .size = 170052171,
                .md5 = "c32a1d4ab5d03f1284b67883e8d87530",
                .published = true}}},
    {.name = "mnist",
     .title = "MNIST",
     .folder = "mnist",
     .use = "data=mnist",
     .layout = "mnist",
     .needs = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
               "t10k-labels-idx1-ubyte.gz"},
     .terms = "cite LeCun, Bottou, Bengio and Haffner, 1998",
     .files = {MNIST_FILE("train-images-idx3-ubyte.gz", 9912422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
               MNIST_FILE("train-labels-idx1-ubyte.gz", 28881, "d53e105ee54ea40749a09fcbcd1e9432"),
               MNIST_FILE("t10k-images-idx3-ubyte.gz", 1648877, "9fb629c4189551a2d022fa330f9573f3"),
               MNIST_FILE("t10k-labels-idx1-ubyte.gz", 4542, "ec29112dd5afa0611ce80d1b7f02629c")}},
    {.name = "ml-latest-small",
     .alias = "movielens",
     .title = "MovieLens, 100,000 ratings, latest",
     .folder = "ml-latest-small",
     .use = "experiment=movielens",
     .layout = "movielens",
     .needs = {"ratings.csv", "movies.csv"},
     .unpack = true,
     .unpacked = 3400000,
     .terms = GROUPLENS_TERMS,
     .files = {{.name = "ml-latest-small.zip",
                .urls = {GROUPLENS "ml-latest-small.zip"},
                .sum_end = ".md5",
                .published = true}}},
    {.name = "ml-100k",
     .title = "MovieLens, 100,000 ratings, 1998",
     .folder = "ml-100k",
     .use = "experiment=movielens",
     .layout = "movielens",
     .needs = {"u.data", "u.item"},
     .unpack = true,
     .unpacked = 16000000,
     .terms = GROUPLENS_TERMS,
     .files = {{.name = "ml-100k.zip",
                .urls = {GROUPLENS "ml-100k.zip"},
                .size = 4924029,
                .md5 = "0e33842e24a9c977be4e0107933c0723",
                .published = true}}},
    {.name = "ml-1m",
     .title = "MovieLens, 1 million ratings, 2003",
     .folder = "ml-1m",
     .use = "experiment=movielens",
     .layout = "movielens",
     .needs = {"ratings.dat", "movies.dat"},
     .unpack = true,
     .unpacked = 25000000,
     .terms = GROUPLENS_TERMS,
     .files = {{.name = "ml-1m.zip",
                .urls = {GROUPLENS "ml-1m.zip"},
                .size = 5917549,
                .md5 = "c4d9eecfca2ab87c1945afe126590906",
                .published = true}}},
    {.name = "ml-25m",
     .title = "MovieLens, 25 million ratings, 2019",
     .folder = "ml-25m",
     .use = "experiment=movielens",
     .layout = "movielens",
     .needs = {"ratings.csv", "movies.csv"},
     .unpack = true,
     .unpacked = 1200000000,
     .terms = GROUPLENS_TERMS,
     .files = {{.name = "ml-25m.zip",
                .urls = {GROUPLENS "ml-25m.zip"},
                .size = 261978986,
                .md5 = "6b51fb2759a8657d3bfcbfc42b592ada",
                .published = true}}},
    {.name = "tinyimagenet",
     .alias = "tiny-imagenet-200",
     .title = "Tiny ImageNet",
     .folder = "tiny-imagenet-200",
     .use = "experiment=tinyimagenet",
     .layout = "tinyimagenet",
     .needs = {"wnids.txt", "words.txt", "train", "val/val_annotations.txt"},
     .unpack = true,
     .unpacked = 500000000,
     .terms = "ImageNet's terms: research and education, not commercial",
     .files = {{.name = "tiny-imagenet-200.zip",
                .urls = {"http://cs231n.stanford.edu/tiny-imagenet-200.zip"},
                .size = 248100043,
                .md5 = "90528d7ca1a48142e341f4ef8d21d0de"}}},
    {.name = "cinic10",
     .title = "CINIC-10",
     .folder = "cinic-10",
     .use = "data=cinic10",
     .layout = "cinic10",
     .needs = {"train", "valid", "test"},
     .unpack = true,
     .unpacked = 1300000000,
     .terms = "CC BY 4.0; cite Darlow, Crowley, Antoniou and Storkey, 2018",
     .files = {{.name = "CINIC-10.tar.gz",
                .urls = {"https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz",
                         "https://datashare.is.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz"},
                .size = 687544992,
                .md5 = "6ee4d0c996905fe93221de577967a372",
                .published = true}}},
    {.name = "opus_books",
     .alias = "en-it",
     .title = "OPUS Books, English and Italian, 32,332 pairs",
     .folder = "opus_books-en-it",
     .use = "data=pairs",
     .layout = "pairs",
     .needs = {"Books.en-it.en", "Books.en-it.it"},
     .unpack = true,
     .unpacked = 9100000,
     .terms = "cite Tiedemann, Parallel Data, Tools and Interfaces in OPUS, 2012",
     .files = {{.name = "opus_books-en-it.txt.zip",
                .urls = {"https://object.pouta.csc.fi/OPUS-Books/v1/moses/en-it.txt.zip"},
                .size = 3295251}}},
    {.name = "tatoeba",
     .title = "Tatoeba, English and Italian",
     .folder = "tatoeba-en-it",
     .use = "data=pairs",
     .layout = "pairs",
     .needs = {"Tatoeba.en-it.en", "Tatoeba.en-it.it"},
     .unpack = true,
     .unpacked = 40000000,
     .terms = "CC BY 2.0 FR; credit Tatoeba and its contributors",
     .files = {{.name = "tatoeba-en-it.txt.zip",
                .urls = {"https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses/en-it.txt.zip"}}}},
    {.name = "imagenet",
     .title = "ImageNet (ILSVRC 2012)",
     .use = "data=imagenet",
     .terms = "an account at image-net.org; research and education, not commercial",
     .by_hand = "ImageNet needs an account, so nothing can be downloaded here. Register at "
                "https://image-net.org/download-images "
                "and get ILSVRC2012_img_train.tar (MD5 1d675b47d978889d74fa0da5fadfb00e) and "
                "ILSVRC2012_img_val.tar (MD5 "
                "29b22e2961454d5413ddabcf34fc5622). Unpack the 1000 archives of the first into "
                "train/nXXXXXXXX/, sort the pictures "
                "of the second into val/nXXXXXXXX/, and train with data=imagenet data.dir=FOLDER. Without an "
                "account: cohort data "
                "get tinyimagenet"},
    {0}};

const co_set *co_set_find(const char *name)
{
    for (const co_set *set = co_sets; set->name; set++)
        if (strcmp(set->name, name) == 0 || (set->alias && strcmp(set->alias, name) == 0))
            return set;
    return NULL;
}

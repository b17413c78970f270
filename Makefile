# make            build/cohort                         make test        all tests, some 4 minutes
# make demo       set up, build, train digits          make check       test + layers, format, model, warnings, sanitizers, clang
# make bench      the measurements, as JSON            make check-long  campaigns of kills and fuzzing
# make fmt        clang-format 14                      make install     PREFIX=/usr/local; make uninstall
# V=release|clang|asan|tsan chooses the variant; everything of a variant lives under build/$(V)/. VERBOSE=1: whole commands.
V      ?= release
PREFIX ?= /usr/local
B      := build/$(V)
JOBS   := $(shell nproc)

CC_release := gcc
CC_clang   := clang
CC_asan    := gcc
CC_tsan    := gcc
VFLAGS_asan := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# ThreadSanitizer does not model fences; the marks beside ours are atomics, which it does.
VFLAGS_tsan := -fsanitize=thread -Wno-tsan
OPT_asan := -O1
OPT_tsan := -O1
CC   := $(or $(CC_$(V)),gcc)
OPT  := $(or $(OPT_$(V)),-O2)

WARN   := -Wall -Wextra -Wshadow -Wvla -Wmissing-prototypes -Wstrict-prototypes -Wno-unused-parameter \
          -Wno-missing-field-initializers $(if $(CI),-Werror)
# The numerics contract: no contraction, no fast maths. FMA only where a kernel asks for it by name.
NUMERICS := -ffp-contract=off -fno-fast-math -fno-math-errno
CFLAGS := -std=gnu11 $(OPT) -g -pthread $(WARN) $(NUMERICS) -D_GNU_SOURCE -Iinclude -Isrc -I$(B)/gen $(VFLAGS_$(V)) $(EXTRA)
LDFLAGS := -rdynamic -pthread $(VFLAGS_$(V)) $(EXTRA)
# Static: the program starts on a host that has nothing but libc. Their names stay inside: what dlopen brings (libcurl,
# libpmix) has libraries of its own, of other versions, and must not bind to ours.
STATIC := libyaml.a libjansson.a libssl.a libcrypto.a liblzma.a libjpeg.a libpng16.a libwebp.a libz.a libncursesw.a libtinfo.a
LDLIBS := $(STATIC:%=-l:%) -ldl -lm
comma  := ,
LDFLAGS += $(STATIC:%=-Wl$(comma)--exclude-libs$(comma)%)

# src/kernel/simd/ is compiled once per level, with the level's instructions and src/kernel/simd/vec_LEVEL.h.
LEVELS := avx512 avx2 fma128
LEVEL_avx512 := -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma
LEVEL_avx2   := -mavx2 -mfma
LEVEL_fma128 := -mavx -mfma

SIMD  := $(wildcard src/kernel/simd/*.c)
SRC   := $(filter-out src/lib/main.c $(SIMD),$(wildcard src/*/*.c src/*/*/*.c))
OBJ   := $(SRC:src/%.c=$(B)/obj/%.o) $(foreach l,$(LEVELS),$(SIMD:src/kernel/simd/%.c=$(B)/obj/kernel/simd/$(l)/%.o))
TSRC  := $(filter-out tests/fuzz/%,$(wildcard tests/*.c tests/*/*.c))
ifeq ($(V),tsan) # only the files with tests for it, and what they share
TSRC  := $(shell grep -L '^TEST' $(TSRC)) $(shell grep -l '^TEST.*_tsan' $(TSRC))
endif
TOBJ  := $(TSRC:tests/%.c=$(B)/tests-obj/%.o)
PROBES := $(patsubst src/data/probe/%,$(B)/gen/%.inc,$(wildcard src/data/probe/*))
PAGE  := $(patsubst src/web/page/%,$(B)/gen/%.inc,$(wildcard src/web/page/*))
DYGRAPHS := /usr/share/javascript/dygraphs
CHARTS := $(B)/gen/dygraph.min.js.inc $(B)/gen/dygraph.min.css.inc
GEN   := $(PAGE) $(CHARTS) $(B)/gen/digits.inc $(B)/gen/builtins.inc $(PROBES)
COHORT := $(if $(filter release,$(V)),build/cohort,$(B)/cohort)
# A word and a file per command; VERBOSE=1 shows the commands.
say = $(if $(VERBOSE),,@echo '$(1) $(2)';)
TESTS  := $(B)/tests

.PHONY: all setup demo test tests check check-long bench fmt install uninstall clean layers format warnings fuzz model \
        instructions
all: $(COHORT)

setup:
	@tools/setup

$(COHORT): $(B)/obj/lib/main.o $(B)/libcohort.a
	$(call say,LINK,$@) $(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/libcohort.a: $(OBJ)
	@rm -f $@
	$(call say,AR,$@) ar rcs $@ $^

# The tests install what there is, several at once: it must be there.
$(TESTS): $(TOBJ) $(B)/libcohort.a | $(B)/lib/libcohort.a $(B)/share/done
	$(call say,LINK,$@) $(CC) $(LDFLAGS) -o $@ $(TOBJ) $(B)/libcohort.a $(LDLIBS)
tests: $(TESTS)

# bench/NAME.c is a program of its own.
$(B)/bench/%: bench/%.c $(B)/libcohort.a
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CFLAGS) $(KOPT) -mavx2 -mfma $(LDFLAGS) -o $@ $^ $(LDLIBS)
BENCHES := $(patsubst bench/%.c,$(B)/bench/%,$(wildcard bench/*.c))

# Kernels are worth -O3.
KOPT := $(if $(OPT_$(V)),,-O3)
$(B)/obj/kernel/%.o $(B)/obj/optim/%.o $(B)/obj/comm/%.o: CFLAGS += $(KOPT)

$(B)/obj/%.o: src/%.c Makefile | $(GEN)
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

# $(B)/obj/kernel/simd/LEVEL/NAME.o: the level is the folder's name.
.SECONDEXPANSION:
$(B)/obj/kernel/simd/%.o: src/kernel/simd/$$(notdir $$*).c Makefile | $(GEN)
	@mkdir -p $(@D)
	$(call say,CC,$< ($(*D))) $(CC) $(CFLAGS) $(LEVEL_$(*D)) -DSIMD_LEVEL=$(*D) -MMD -MP -c -o $@ $<

$(B)/tests-obj/%.o: tests/%.c Makefile | $(GEN)
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CFLAGS) -Itests -MMD -MP -c -o $@ $<

# The digits, the pictures of data/probe.c and the configuration groups are inside the program.
$(B)/gen/digits.inc: src/data/digits.csv.gz
	@mkdir -p $(@D)
	$(call say,GEN,$@) gzip -dc $< | sed 's/$$/,/' > $@
$(PROBES): $(B)/gen/%.inc: src/data/probe/%
	@mkdir -p $(@D)
	$(call say,GEN,$@) od -An -v -tx1 $< | sed 's/ \([0-9a-f]*\)/0x\1,/g' > $@
# The board's page, and its charts from Debian's libjs-dygraphs.
$(PAGE): $(B)/gen/%.inc: src/web/page/%
	@mkdir -p $(@D)
	$(call say,GEN,$@) od -An -v -tx1 $< | sed 's/ \([0-9a-f]*\)/0x\1,/g' > $@
$(DYGRAPHS)/%:
	@echo 'the charts of the board are missing: run tools/setup (package libjs-dygraphs)' >&2; exit 1
$(CHARTS): $(B)/gen/%.inc: $(DYGRAPHS)/%
	@mkdir -p $(@D)
	$(call say,GEN,$@) od -An -v -tx1 $< | sed 's/ \([0-9a-f]*\)/0x\1,/g' > $@
$(B)/gen/builtins.inc: $(shell find configs -name '*.yaml' 2>/dev/null) tools/embed
	@mkdir -p $(@D)
	$(call say,GEN,$@) tools/embed configs > $@

demo: setup
	@$(MAKE) --no-print-directory -j$(JOBS) all
	build/cohort train experiment=demo

test:
	@tools/setup strace iproute2
	@$(MAKE) --no-print-directory -j$(JOBS) all tests
	$(TESTS) $(T)

# Includes and calls point one way: the calls are read from the objects.
layers: $(OBJ)
	tools/layers $(B)/obj
format:
	clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h')
	@! LC_ALL=C.UTF-8 grep -nE '^.{121,}' $$(git ls-files '*.c' '*.h')
warnings:
	$(MAKE) --no-print-directory -j$(JOBS) CI=1 B=build/werror/$(V) COHORT=build/werror/$(V)/cohort all tests
	$(MAKE) --no-print-directory -j$(JOBS) CI=1 V=clang all tests
# The protocol of the step over several hosts, checked with spin (docs/model).
model:
	@tools/setup spin
	tools/model
# Instructions of the kernels in a step of small models, by compiler, within 2 % of what is recorded.
instructions: $(COHORT)
	@tools/setup valgrind
	$(COHORT) bench instructions --compare tests/golden/instructions.json
check:
	@tools/setup clang clang-format libclang-rt-14-dev strace iproute2 valgrind $$(tools/daemons)
	@$(MAKE) --no-print-directory layers format model warnings test instructions
	$(MAKE) --no-print-directory -j$(JOBS) V=asan all tests && build/asan/tests
	$(MAKE) --no-print-directory -j$(JOBS) V=tsan all tests && build/tsan/tests -k tsan
	$(MAKE) --no-print-directory -j$(JOBS) V=clang all tests && build/clang/tests
	$(MAKE) --no-print-directory V=clang instructions
	tools/top-length
check-long: check
	tools/check-long
bench: setup
	@$(MAKE) --no-print-directory -j$(JOBS) all $(BENCHES)
	tools/bench
fuzz:
	tools/fuzz $(SECONDS_EACH)
fmt:
	clang-format -i $$(git ls-files '*.c' '*.h')

# The library as programs link it: one object, of which nothing but cohort_* can be seen from outside.
$(B)/lib/libcohort.a: $(OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,LINK,$@) ld -r -o $(@D)/cohort.o $(OBJ) && \
	objcopy --wildcard --keep-global-symbol='cohort_*' --strip-debug $(@D)/cohort.o && ar rcs $@ $(@D)/cohort.o
# Manual pages and completions are written by the program, from its own tables; in an empty folder, where there is no
# configs/ to add to them.
$(B)/share/done: $(COHORT)
	@rm -rf $(@D) && mkdir -p $(@D)/man $(@D)/empty
	$(call say,GEN,$(@D)) cd $(@D)/empty && cohort=$(abspath $(COHORT)) && $$cohort help --man > ../man/cohort.1 && \
	for c in $$($$cohort complete -- ''); do $$cohort help --man $$c > ../man/cohort-$$c.1 || exit 1; done && \
	$$cohort completion bash > ../cohort.bash && $$cohort completion zsh > ../_cohort && touch ../done

DEST := $(DESTDIR)$(PREFIX)
INSTALLED = bin/cohort lib/libcohort.a lib/pkgconfig/cohort.pc include/cohort.h \
            share/bash-completion/completions/cohort share/zsh/site-functions/_cohort share/man/man1/cohort.1 \
            'share/man/man1/cohort-'*.1
install: all $(B)/lib/libcohort.a $(B)/share/done
	install -D $(COHORT) $(DEST)/bin/cohort
	install -D -m 644 $(B)/lib/libcohort.a $(DEST)/lib/libcohort.a
	install -d $(DEST)/lib/pkgconfig $(DEST)/share/man/man1
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' 'Name: cohort' \
	    'Description: trains neural networks on any number of processes to the same weights, bit for bit' \
	    "Version: $$(sed -n 's/^#define COHORT_VERSION  *"\(.*\)"/\1/p' include/cohort.h)" \
	    'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lcohort -pthread $(LDLIBS)' > $(DEST)/lib/pkgconfig/cohort.pc
	install -D -m 644 include/cohort.h $(DEST)/include/cohort.h
	install -D -m 644 $(B)/share/cohort.bash $(DEST)/share/bash-completion/completions/cohort
	install -D -m 644 $(B)/share/_cohort $(DEST)/share/zsh/site-functions/_cohort
	install -m 644 $(B)/share/man/*.1 $(DEST)/share/man/man1
	cd docs && find . '(' -name '*.md' -o -name layers.txt ')' -exec install -D -m 644 {} $(abspath $(DEST))/share/doc/cohort/{} \;
uninstall:
	cd $(DEST) && rm -f $(INSTALLED) && rm -rf share/doc/cohort

clean:
	rm -rf build

-include $(OBJ:.o=.d) $(TOBJ:.o=.d) $(B)/obj/lib/main.d

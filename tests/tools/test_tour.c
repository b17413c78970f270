/* test_tour.c -- the walks of docs/tour.md: rows count from 1, and each names one file of src/ that exists,
 * once in its walk. And its table of rooms has all of them. */
#include "harness.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WALKS_LEAST = 7, ROWS_MOST = 40, NAME_MOST = 200 };

typedef struct walk {
    char title[NAME_MOST];
    char file[ROWS_MOST][NAME_MOST];
    int rows;
} walk;

/* "| 3 | data/loader.c | what happens |" */
static void check_row(walk *w, const char *line)
{
    char path[NAME_MOST + 8], name[NAME_MOST];
    int number = 0;

    if (sscanf(line, "| %d | %199[^|]|", &number, name) != 2)
        return;
    size_t len = strlen(name);
    while (len > 0 && name[len - 1] == ' ')
        name[--len] = '\0';
    CHECK(w->rows < ROWS_MOST && number == w->rows + 1, "%s: row %d comes after row %d", w->title, number,
          w->rows);
    snprintf(path, sizeof path, "src/%s", name);
    CHECK(access(test_repo(path), R_OK) == 0, "%s: row %d: \"%s\" is not one file of src/", w->title, number,
          name);
    for (int i = 0; i < w->rows; i++)
        CHECK(strcmp(w->file[i], name) != 0, "%s: rows %d and %d both name %s", w->title, i + 1, number, name);
    snprintf(w->file[w->rows++], NAME_MOST, "%s", name);
}

TEST(each_row_of_a_walk_of_the_tour_names_one_file_and_no_walk_names_a_file_twice)
{
    FILE *tour = fopen(test_repo("docs/tour.md"), "r");
    static walk w;
    char *line = NULL;
    size_t room = 0;
    bool walks = false;
    int n = 0;

    CHECK(tour != NULL, "docs/tour.md is missing");
    while (getline(&line, &room, tour) >= 0) {
        if (strncmp(line, "## ", 3) == 0)
            walks = strcmp(line, "## Walks\n") == 0;
        if (strncmp(line, "### ", 4) == 0) {
            CHECK(!walks || n == 0 || w.rows > 1, "%s has no rows", w.title);
            w.rows = 0;
            snprintf(w.title, sizeof w.title, "%.*s", (int)strcspn(line + 4, "\n"), line + 4);
            n += walks;
        }
        if (walks && n > 0)
            check_row(&w, line);
    }
    CHECK(n >= WALKS_LEAST, "%d walks", n);
    free(line);
    fclose(tour);
}

TEST(the_tour_has_a_row_for_each_room)
{
    static char text[1 << 18];
    char row[NAME_MOST + 8];
    FILE *tour = fopen(test_repo("docs/tour.md"), "r");
    DIR *src = opendir(test_repo("src"));
    int rooms = 0;

    CHECK(tour && src, "docs/tour.md or src/ is missing");
    text[fread(text, 1, sizeof text - 1, tour)] = '\0';
    for (const struct dirent *e; (e = readdir(src));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(row, sizeof row, "\n| %.150s |", e->d_name);
        CHECK(strstr(text, row), "the tour's table of rooms has no row for src/%s", e->d_name);
        rooms++;
    }
    CHECK(rooms > 20, "%d rooms", rooms);
    closedir(src);
    fclose(tour);
}

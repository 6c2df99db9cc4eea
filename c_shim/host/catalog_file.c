/* Directories of databases (with db.opt, as the server writes it) and small files. */
#include "catalog_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec.h"

bool catalog_path(host *h, char *out, size_t size, const char *db, const char *name,
                  const char *suffix)
{
    char d[1100], n[1100] = "";
    if (!filename_encode(db, d, sizeof d) || (name && !filename_encode(name, n, sizeof n)))
        return false;
    int len = name ? snprintf(out, size, "%s/%s/%s%s", h->datadir, d, n, suffix)
                   : snprintf(out, size, "%s/%s", h->datadir, d);
    return len > 0 && (size_t)len < size;
}

bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool file_read(const char *path, struct strbuf *out)
{
    char chunk[8192];
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        buf_add(out, chunk, n);
    bool ok = !ferror(f);
    fclose(f);
    return ok;
}

static void sync_directory(const char *path)
{
    char dir[4200];
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (!slash)
        return;
    *slash = 0;
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

bool file_replace(const char *path, const char *data, size_t len)
{
    char temp[4300];
    snprintf(temp, sizeof temp, "%s.new", path);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC, 0660);
    if (fd < 0)
        return false;
    bool ok = write(fd, data, len) == (ssize_t)len && fsync(fd) == 0;
    int saved = errno;
    close(fd);
    if (ok)
        ok = rename(temp, path) == 0, saved = errno;
    if (!ok)
        unlink(temp);
    else
        sync_directory(path);
    errno = saved;
    return ok;
}

bool catalog_db_exists(host *h, const char *db)
{
    char path[4200];
    if (!strcasecmp(db, "information_schema"))
        return true;
    return catalog_path(h, path, sizeof path, db, NULL, "") && is_directory(path);
}

static bool db_opt_path(host *h, char *out, size_t size, const char *db)
{
    if (!catalog_path(h, out, size - 8, db, NULL, ""))
        return false;
    strcat(out, "/db.opt");
    return true;
}

uint32_t catalog_db_collation(host *h, const char *db)
{
    char path[4200];
    struct strbuf text = {0};
    uint32_t collation = 0;
    if (db_opt_path(h, path, sizeof path, db) && file_read(path, &text) && text.data) {
        char *line = strstr(text.data, "default-collation=");
        if (line) {
            line += strlen("default-collation=");
            line[strcspn(line, "\r\n")] = 0;
            collation = coll_by_name(line);
        }
    }
    buf_free(&text);
    return collation ? collation : COLL_UTF8MB4;
}

bool catalog_create_db(session *s, const char *db, uint32_t collation, bool if_not_exists)
{
    char path[4200], opt[4200];
    struct strbuf text = {0};
    if (!catalog_path(s->h, path, sizeof path, db, NULL, "")) {
        sql_error(s, 1102, db);
        return false;
    }
    if (catalog_db_exists(s->h, db) && if_not_exists) {
        sql_note(s, 1007, db);
        return true;
    }
    if (catalog_db_exists(s->h, db) || mkdir(path, 0770) != 0) {
        if (errno == EEXIST || catalog_db_exists(s->h, db))
            sql_error(s, 1007, db);
        else
            sql_error(s, 1006, db, errno, strerror(errno));
        return false;
    }
    buf_printf(&text, "default-character-set=%s\ndefault-collation=%s\n", coll_charset(collation),
               coll_name(collation));
    db_opt_path(s->h, opt, sizeof opt, db);
    bool ok = file_replace(opt, text.data, text.len);
    if (!ok)
        sql_error(s, 1006, db, errno, strerror(errno));
    buf_free(&text);
    return ok;
}

bool catalog_remove_db(session *s, const char *db)
{
    char path[4200], opt[4200];
    if (!catalog_path(s->h, path, sizeof path, db, NULL, "") || !db_opt_path(s->h, opt, sizeof opt, db))
        return false;
    unlink(opt);
    if (rmdir(path) != 0) {
        sql_error(s, 1010, path, errno, strerror(errno));
        return false;
    }
    sync_directory(path);
    return true;
}

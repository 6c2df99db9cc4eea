/* Whether a text is JSON: the check that a JSON column carries. */
#include <ctype.h>
#include <string.h>

#include "value.h"

struct json {
    const char *p, *end;
    unsigned depth;
};

enum { JSON_DEPTH_MAX = 100 };

static bool json_value(struct json *j);

static void json_blank(struct json *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r'))
        j->p++;
}

static bool json_take(struct json *j, char c)
{
    json_blank(j);
    if (j->p >= j->end || *j->p != c)
        return false;
    j->p++;
    return true;
}

static bool json_string(struct json *j)
{
    if (!json_take(j, '"'))
        return false;
    while (j->p < j->end && *j->p != '"') {
        if ((unsigned char)*j->p < 0x20)
            return false;
        if (*j->p++ != '\\')
            continue;
        if (j->p >= j->end || !strchr("\"\\/bfnrtu", *j->p))
            return false;
        if (*j->p++ != 'u')
            continue;
        for (int i = 0; i < 4; i++, j->p++)
            if (j->p >= j->end || !isxdigit((unsigned char)*j->p))
                return false;
    }
    return j->p++ < j->end;
}

static bool json_digits(struct json *j)
{
    const char *start = j->p;
    while (j->p < j->end && isdigit((unsigned char)*j->p))
        j->p++;
    return j->p > start;
}

static bool json_number(struct json *j)
{
    if (j->p < j->end && *j->p == '-')
        j->p++;
    const char *start = j->p;
    if (!json_digits(j) || (*start == '0' && j->p - start > 1))
        return false;
    if (j->p < j->end && *j->p == '.') {
        j->p++;
        if (!json_digits(j))
            return false;
    }
    if (j->p < j->end && (*j->p == 'e' || *j->p == 'E')) {
        j->p++;
        if (j->p < j->end && (*j->p == '+' || *j->p == '-'))
            j->p++;
        return json_digits(j);
    }
    return true;
}

static bool json_members(struct json *j, char close, bool object)
{
    j->p++;
    if (json_take(j, close))
        return true;
    do {
        if (object && !(json_string(j) && json_take(j, ':')))
            return false;
        if (!json_value(j))
            return false;
    } while (json_take(j, ','));
    return json_take(j, close);
}

static bool json_word(struct json *j, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(j->end - j->p) < len || memcmp(j->p, word, len))
        return false;
    j->p += len;
    return true;
}

static bool json_value(struct json *j)
{
    json_blank(j);
    if (j->p >= j->end || ++j->depth > JSON_DEPTH_MAX)
        return false;
    bool ok;
    switch (*j->p) {
    case '{': ok = json_members(j, '}', true); break;
    case '[': ok = json_members(j, ']', false); break;
    case '"': ok = json_string(j); break;
    case 't': ok = json_word(j, "true"); break;
    case 'f': ok = json_word(j, "false"); break;
    case 'n': ok = json_word(j, "null"); break;
    default: ok = json_number(j);
    }
    j->depth--;
    return ok;
}

bool json_valid(const char *s, size_t len)
{
    struct json j = {s, s + len, 0};
    if (!json_value(&j))
        return false;
    json_blank(&j);
    return j.p == j.end;
}

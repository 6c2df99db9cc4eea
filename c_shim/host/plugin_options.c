/* Options of the command line that belong to an engine: who knows them, and are they right? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "registry.h"
#include "xt_engine.h"

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The setting of that name, or the only one whose name begins so; *ambiguous: there is another. */
static const xt_setting *find_setting(const xt_api *api, const char *name,
                                      const xt_setting **ambiguous)
{
    const xt_setting *all, *found = NULL;
    uint32_t count;

    *ambiguous = NULL;
    if (api->settings(&all, &count) != XT_OK)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const xt_setting *setting = xt_setting_at(all, i);

        if (!begins_with(setting->name, name))
            continue;
        if (strlen(setting->name) == strlen(name)) {
            *ambiguous = NULL;
            return setting;
        }
        if (found != NULL)
            *ambiguous = setting;
        found = found != NULL ? found : setting;
    }
    return found;
}

/* What an option without a value means; NULL: it needs one. */
static const char *value_of(const engine_option *option, const xt_setting *setting)
{
    if (option->value != NULL)
        return option->value;
    return setting->type == XT_SETTING_BOOL ||
                   (setting->flags & (XT_SETTING_NO_VALUE | XT_SETTING_OPTIONAL_VALUE))
               ? "ON"
               : NULL;
}

/* Is the value right for the setting that was found? */
static int check_value(const xt_api *api, const engine_option *option, const xt_setting *setting)
{
    const char *value = value_of(option, setting);
    char why[512] = "";

    if (strlen(setting->name) != strlen(option->name))
        host_log(HOST_LOG_WARNING, "xtradb-host: Using unique option prefix '%s' is error-prone and "
                 "can break in the future. Please use the full name '%s' instead.", option->name,
                 setting->name);
    if (value == NULL) {
        host_log(HOST_LOG_ERROR, "xtradb-host: option '--%s' requires an argument", setting->name);
        return EXIT_OPTION_VALUE_MISSING;
    }
    if (api->setting_check(setting->name, value, why, sizeof why) == XT_OK)
        return 0;
    host_log(HOST_LOG_ERROR, "xtradb-host: option '%s': value '%s' is not acceptable%s%s",
             setting->name, value, why[0] != '\0' ? ": " : "", why);
    return EXIT_OPTION_BAD_VALUE;
}

/* Does an engine of a library know it? -1: no; else 0 or an exit code. */
static int ask_libraries(registry *r, const engine_option *option)
{
    for (library *lib = r->loader.libraries; lib != NULL; lib = lib->next) {
        const xt_setting *ambiguous, *setting = find_setting(lib->api, option->name, &ambiguous);

        if (ambiguous != NULL) {
            host_log(HOST_LOG_ERROR, "xtradb-host: ambiguous option '--%s' (%s, %s)", option->name,
                     setting->name, ambiguous->name);
            return EXIT_OPTION_AMBIGUOUS;
        }
        if (setting != NULL)
            return check_value(lib->api, option, setting);
    }
    return -1;
}

/* The same question to the builtin engine. It is asked before it starts: by a trial one. */
static int ask_builtin(host *h, const engine_option *option)
{
    const plugin *p = registry_find(registry_of(h), "InnoDB");
    engine *trial;
    int answer;

    if (p == NULL || p->lib != NULL)
        return -1;
    trial = heap_engine_new(h);
    answer = trial->ops->set_variable(trial, NULL, true, option->name,
                                      option->value != NULL ? option->value : "", SET_ANY_TYPE);
    heap_engine_free(trial);
    if (answer == 1193)
        return -1;
    if (answer == 0)
        return 0;
    host_log(HOST_LOG_ERROR, "xtradb-host: option '%s': value '%s' is not acceptable",
             option->name, option->value != NULL ? option->value : "");
    return EXIT_OPTION_BAD_VALUE;
}

static int unknown(const engine_option *option)
{
    const char *what = option->value != NULL ? "variable" : "option";
    const char *dashes = option->value != NULL ? "" : "--";

    if (option_is_removed(option->name)) {
        host_log(HOST_LOG_WARNING, "'%s' was removed. It does nothing now and exists only for "
                 "compatibility with old my.cnf files.", option->given);
        return 0;
    }
    if (option->loose) {
        host_log(HOST_LOG_WARNING, "xtradb-host: unknown %s '%s%s'", what, dashes, option->given);
        return 0;
    }
    host_log(HOST_LOG_ERROR, "xtradb-host: unknown %s '%s%s'", what, dashes, option->given);
    return EXIT_OPTION_UNKNOWN;
}

void plugin_options_apply_builtin(host *h, engine *e)
{
    const host_options *options = registry_of(h)->options;

    for (size_t i = 0; i < options->variable_count; i++)
        if (options->variables[i].value != NULL)
            e->ops->set_variable(e, NULL, true, options->variables[i].name,
                                 options->variables[i].value, SET_ANY_TYPE);
}

int plugin_options_check(host *h)
{
    registry *r = registry_of(h);
    int result = 0;

    for (size_t i = 0; result == 0 && i < r->options->variable_count; i++) {
        const engine_option *option = &r->options->variables[i];

        result = ask_libraries(r, option);
        if (result < 0)
            result = ask_builtin(h, option);
        if (result < 0)
            result = unknown(option);
    }
    return result;
}

static void forget_settings(host *h)
{
    for (size_t i = 0; i < h->setting_count; i++) {
        free(h->settings[i].name);
        free(h->settings[i].value);
    }
    free(h->settings);
    h->settings = NULL;
    h->setting_count = 0;
}

void plugin_options_apply(host *h, const xt_api *api)
{
    const host_options *options = registry_of(h)->options;

    forget_settings(h);
    h->settings = calloc(options->variable_count + 1, sizeof *h->settings);
    if (h->settings == NULL)
        abort();
    for (size_t i = 0; i < options->variable_count; i++) {
        const engine_option *option = &options->variables[i];
        const xt_setting *ambiguous, *setting = find_setting(api, option->name, &ambiguous);
        const char *value = setting == NULL ? NULL : value_of(option, setting);

        if (value == NULL || ambiguous != NULL)
            continue;
        h->settings[h->setting_count++] =
            (struct host_setting){ .name = strdup(setting->name), .value = strdup(value) };
    }
}

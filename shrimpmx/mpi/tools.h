/* The tool information interface, MPI_T (MPI 4.1, chapter 15): what agents of this rank's node, and
 * this rank, have counted, as performance variables, in a category for each kind of agent. They
 * always count and cannot be written. There are no control variables and no events. front.c has it.
 */
#ifndef SHRIMPMX_MPI_TOOLS_H
#define SHRIMPMX_MPI_TOOLS_H

#include "mpi/tool_variables.h"

enum {
    T_ERR_MEMORY = 59,
    T_ERR_OUT_OF_HANDLES = 65,
    T_ERR_NO_STARTSTOP = 70,
    T_ERR_NO_WRITE = 71,
};
enum { BIND_NO_OBJECT = 9700, VERBOSITY_USER_DETAIL = 222, UNSIGNED_LONG_LONG = 0x4C000819 };
enum { THREAD_MULTIPLE = 3 };
/* All those of a session. */
#define ALL_HANDLES ((MPI_T_pvar_handle)-1)

struct MPIR_T_pvar_session_s {
    int handles; /* that are not freed */
};
struct MPIR_T_pvar_handle_s {
    MPI_T_pvar_session session;
    int index; /* of its variable */
};

/* How often the interface was initialized, and not finalized. */
static int tools;

static int tools_are_there(void) {
    return tools > 0;
}

#define ONLY_WITHIN_TOOLS \
    if (tools == 0) \
        return T_ERR_NOT_INITIALIZED

/* A text, as much of it as there is room for, and what it needs, both with the zero at the end. */
static void give_text(const char *text, char *place, int *length) {
    if (length == NULL)
        return;
    if (place != NULL && *length > 0)
        snprintf(place, (size_t)*length, "%s", text);
    *length = (int)strlen(text) + 1;
}

static void give(int *place, int value) {
    if (place != NULL)
        *place = value;
}

static int is_variable(int index) {
    return index >= 0 && index < TOOL_VARIABLES;
}

static int is_category(int index) {
    return index >= 0 && index < TOOL_CATEGORIES;
}

static int call_T_init_thread(int required, int *provided) {
    tools++;
    give(provided, THREAD_MULTIPLE);
    return SUCCESS;
}

static int call_T_finalize(void) {
    ONLY_WITHIN_TOOLS;
    tools--;
    return SUCCESS;
}

/* -- Categories. */

static int call_T_category_get_num(int *number) {
    ONLY_WITHIN_TOOLS;
    give(number, TOOL_CATEGORIES);
    return SUCCESS;
}

static int call_T_category_get_info(int index, char *name, int *name_len, char *desc,
                                    int *desc_len, int *num_cvars, int *num_pvars,
                                    int *num_categories) {
    ONLY_WITHIN_TOOLS;
    if (!is_category(index))
        return T_ERR_INVALID_INDEX;
    give_text(tool_categories[index].name, name, name_len);
    give_text(tool_categories[index].text, desc, desc_len);
    give(num_cvars, 0);
    give(num_pvars, tool_categories[index].count);
    give(num_categories, 0);
    return SUCCESS;
}

static int call_T_category_get_index(const char *name, int *index) {
    ONLY_WITHIN_TOOLS;
    if (name == NULL || index == NULL)
        return T_ERR_INVALID;
    for (int each = 0; each < TOOL_CATEGORIES; each++)
        if (strcmp(tool_categories[each].name, name) == 0) {
            *index = each;
            return SUCCESS;
        }
    return T_ERR_INVALID_NAME;
}

static int call_T_category_get_pvars(int index, int len, int *indices) {
    ONLY_WITHIN_TOOLS;
    if (!is_category(index))
        return T_ERR_INVALID_INDEX;
    for (int each = 0; each < tool_categories[index].count && each < len; each++)
        indices[each] = tool_categories[index].first + each;
    return SUCCESS;
}

static int none_of_category(int index, int *number) {
    ONLY_WITHIN_TOOLS;
    if (!is_category(index))
        return T_ERR_INVALID_INDEX;
    give(number, 0);
    return SUCCESS;
}

static int call_T_category_get_num_events(int index, int *num_events) {
    return none_of_category(index, num_events);
}

static int call_T_category_get_categories(int index, int len, int *indices) {
    return none_of_category(index, NULL);
}

static int call_T_category_get_cvars(int index, int len, int *indices) {
    return none_of_category(index, NULL);
}

static int call_T_category_get_events(int index, int len, int *indices) {
    return none_of_category(index, NULL);
}

/* -- Performance variables. */

static int call_T_pvar_get_num(int *number) {
    ONLY_WITHIN_TOOLS;
    give(number, TOOL_VARIABLES);
    return SUCCESS;
}

static int call_T_pvar_get_info(int index, char *name, int *name_len, int *verbosity,
                                int *var_class, MPI_Datatype *datatype, MPI_T_enum *enumtype,
                                char *desc, int *desc_len, int *bind, int *readonly,
                                int *continuous, int *atomic) {
    ONLY_WITHIN_TOOLS;
    if (!is_variable(index))
        return T_ERR_INVALID_INDEX;
    give_text(tool_variables[index].name, name, name_len);
    give_text(tool_variables[index].text, desc, desc_len);
    give(verbosity, VERBOSITY_USER_DETAIL);
    give(var_class, tool_variables[index].class);
    give(datatype, UNSIGNED_LONG_LONG);
    if (enumtype != NULL)
        *enumtype = NULL;
    give(bind, BIND_NO_OBJECT);
    give(readonly, 1);
    give(continuous, 1);
    give(atomic, 0);
    return SUCCESS;
}

static int call_T_pvar_get_index(const char *name, int var_class, int *index) {
    ONLY_WITHIN_TOOLS;
    if (name == NULL || index == NULL)
        return T_ERR_INVALID;
    for (int each = 0; each < TOOL_VARIABLES; each++)
        if (tool_variables[each].class == var_class &&
            strcmp(tool_variables[each].name, name) == 0) {
            *index = each;
            return SUCCESS;
        }
    return T_ERR_INVALID_NAME;
}

static int call_T_pvar_session_create(MPI_T_pvar_session *session) {
    ONLY_WITHIN_TOOLS;
    if (session == NULL)
        return T_ERR_INVALID;
    *session = calloc(1, sizeof **session);
    return *session != NULL ? SUCCESS : T_ERR_MEMORY;
}

/* Its handles end with it: they must not be used any more, and the program may free them before. */
static int call_T_pvar_session_free(MPI_T_pvar_session *session) {
    ONLY_WITHIN_TOOLS;
    if (session == NULL || *session == NULL)
        return T_ERR_INVALID_SESSION;
    if ((*session)->handles == 0)
        free(*session);
    *session = NULL;
    return SUCCESS;
}

static int call_T_pvar_handle_alloc(MPI_T_pvar_session session, int index, void *object,
                                    MPI_T_pvar_handle *handle, int *count) {
    ONLY_WITHIN_TOOLS;
    if (session == NULL)
        return T_ERR_INVALID_SESSION;
    if (!is_variable(index))
        return T_ERR_INVALID_INDEX;
    if (handle == NULL)
        return T_ERR_INVALID;
    *handle = calloc(1, sizeof **handle);
    if (*handle == NULL)
        return T_ERR_MEMORY;
    (*handle)->session = session;
    (*handle)->index = index;
    session->handles++;
    give(count, 1);
    return SUCCESS;
}

/* Whether a handle is one of that session: the error otherwise. */
static int check_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    ONLY_WITHIN_TOOLS;
    if (session == NULL)
        return T_ERR_INVALID_SESSION;
    if (handle == NULL || handle == ALL_HANDLES || handle->session != session)
        return T_ERR_INVALID_HANDLE;
    return SUCCESS;
}

static int call_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle) {
    const int code = check_handle(session, handle == NULL ? NULL : *handle);
    if (code != SUCCESS)
        return code;
    session->handles--;
    free(*handle);
    *handle = NULL;
    return SUCCESS;
}

/* Zero before the process joins its run. */
static int call_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf) {
    const int code = check_handle(session, handle);
    if (code != SUCCESS || buf == NULL)
        return code != SUCCESS ? code : T_ERR_INVALID;
    const struct tool_variable *const of = &tool_variables[handle->index];
    unsigned long long value = 0;
    if (joined != NULL)
        joined->Tool_read(of->kind, of->number, &value);
    memcpy(buf, &value, sizeof value);
    return SUCCESS;
}

/* All variables of a session may be named, of which none changes. */
static int refused_to_all_but(int refusal, MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    ONLY_WITHIN_TOOLS;
    if (session != NULL && handle == ALL_HANDLES)
        return SUCCESS;
    const int code = check_handle(session, handle);
    return code != SUCCESS ? code : refusal;
}

static int call_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return refused_to_all_but(T_ERR_NO_STARTSTOP, session, handle);
}

static int call_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return refused_to_all_but(T_ERR_NO_STARTSTOP, session, handle);
}

static int call_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return refused_to_all_but(T_ERR_NO_WRITE, session, handle);
}

static int call_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                             const void *buf) {
    const int code = check_handle(session, handle);
    return code != SUCCESS ? code : T_ERR_NO_WRITE;
}

static int call_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf) {
    return call_T_pvar_write(session, handle, buf);
}

#endif

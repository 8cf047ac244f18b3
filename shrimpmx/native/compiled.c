/* The library of all compiled modules, which shrimpmx/__init__.py loads each of them from. */
#include <Python.h>
#include <string.h>

#define MODULE(name, function) extern PyObject *function(void);
#include "modules.h"
#undef MODULE

static const struct {
    const char *name;
    PyObject *(*function)(void);
} modules[] = {
#define MODULE(name, function) {name, function},
#include "modules.h"
};

enum { MODULES_COUNT = sizeof(modules) / sizeof(modules[0]) };

/* Its number, MODULES_COUNT if there is no such module, -1 with an exception. */
static int number_of(PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    if (text == NULL)
        return -1;
    int number = 0;
    while (number < MODULES_COUNT && strcmp(text, modules[number].name) != 0)
        number++;
    return number;
}

static PyObject *has(PyObject *self, PyObject *name) {
    int number = number_of(name);
    return number < 0 ? NULL : PyBool_FromLong(number < MODULES_COUNT);
}

static PyObject *create_module(PyObject *self, PyObject *spec) {
    PyObject *name = PyObject_GetAttrString(spec, "name");
    int number = name == NULL ? -1 : number_of(name);
    Py_XDECREF(name);
    if (number < 0)
        return NULL;
    if (number == MODULES_COUNT) {
        PyErr_SetString(PyExc_ImportError, "the library has no such module");
        return NULL;
    }
    PyObject *definition = modules[number].function();
    if (definition == NULL)
        return NULL;
    return PyModule_FromDefAndSpec((PyModuleDef *)definition, spec);
}

static PyObject *exec_module(PyObject *self, PyObject *module) {
    PyModuleDef *definition = PyModule_GetDef(module);
    if (definition == NULL || PyModule_ExecDef(module, definition) != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"has", has, METH_O, "Whether a module is in this library, by its full name."},
    {"create_module", create_module, METH_O, "A module, not yet filled, by its spec."},
    {"exec_module", exec_module, METH_O, "Fill a module."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "compiled", NULL, 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_compiled(void) { return PyModuleDef_Init(&definition); }

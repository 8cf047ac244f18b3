/* An interpreter for programs that have none, of C or Fortran: the launcher's. It lives until the
 * process ends, takes no signal and leaves the locale alone. Nothing links with Python: its library
 * is opened here, and has the version of the headers, as both are the launcher's. Modules of the
 * site, which take longer to load than Python itself, stay away: a rank needs one package. */
#include <Python.h>
#include <dlfcn.h>
#include <stdlib.h>

#include "mpi/embed.h"

/* The name of Python's function, and what it is called by here. */
#define FIND(name) __typeof__(name) *name##_ = (__typeof__(name) *)dlsym(library, #name)

const char *embed_python(void) {
    const char *path = getenv("SHRIMPMX_LIBPYTHON"), *program = getenv("SHRIMPMX_PYTHON");
    const char *installed = getenv("SHRIMPMX_PACKAGES");
    if (path == NULL || program == NULL || installed == NULL)
        return "found no Python in this process: start the program by `shrimpmx mpirun`, with a "
               "Python that has a shared library (Debian: package libpython3.x)";
    /* Extension modules look for its symbols among those of all libraries. */
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL)
        return dlerror();
    FIND(PyPreConfig_InitPythonConfig);
    FIND(Py_PreInitialize);
    FIND(PyConfig_InitPythonConfig);
    FIND(PyConfig_SetBytesString);
    FIND(Py_InitializeFromConfig);
    FIND(PyConfig_Clear);
    FIND(PyStatus_Exception);
    FIND(PyEval_SaveThread);
    FIND(PySys_GetObject);
    FIND(PyUnicode_DecodeFSDefault);
    FIND(PyList_Append);

    PyPreConfig before;
    PyPreConfig_InitPythonConfig_(&before);
    before.configure_locale = 0;
    before.parse_argv = 0;
    PyStatus status = Py_PreInitialize_(&before);
    if (PyStatus_Exception_(status))
        return status.err_msg;
    PyConfig config;
    PyConfig_InitPythonConfig_(&config);
    config.install_signal_handlers = 0;
    config.parse_argv = 0;
    config.configure_c_stdio = 0; /* PYTHONUNBUFFERED is not the program's */
    config.site_import = 0;
    /* By it Python finds its environment, pyvenv.cfg. */
    status = PyConfig_SetBytesString_(&config, &config.program_name, program);
    if (!PyStatus_Exception_(status))
        status = Py_InitializeFromConfig_(&config);
    PyConfig_Clear_(&config);
    if (PyStatus_Exception_(status))
        return status.err_msg;
    PyObject *packages = PyUnicode_DecodeFSDefault_(installed);
    if (packages == NULL || PyList_Append_(PySys_GetObject_("path"), packages) != 0)
        return "finds no memory for Python";
    PyEval_SaveThread_();
    return NULL;
}

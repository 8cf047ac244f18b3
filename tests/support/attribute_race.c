/* One thread looks an attribute up; another sets and deletes others of the object, whose records,
 * if they were given back, another object would take.
 */
#include <pthread.h>

enum { KEYS = 32 };

int MPI_Comm_create_keyval(void *copies, void *deletes, int *key, void *state);
int MPI_Comm_set_attr(int comm, int key, void *value);
int MPI_Comm_get_attr(int comm, int key, void *value, int *flag);
int MPI_Comm_delete_attr(int comm, int key);

static volatile int ended;
static int first, second, keys[KEYS];

static void *change(void *rounds) {
    for (long round = 0; round < (long)rounds; round++) {
        for (int number = 0; number < KEYS; number++)
            MPI_Comm_set_attr(first, keys[number], NULL);
        for (int number = 0; number < KEYS; number++) {
            MPI_Comm_delete_attr(first, keys[number]);
            MPI_Comm_set_attr(second, keys[number], NULL);
        }
        for (int number = 0; number < KEYS; number++)
            MPI_Comm_delete_attr(second, keys[number]);
    }
    ended = 1;
    return NULL;
}

/* How many look-ups went wrong. */
long race(int one, int other, long rounds) {
    pthread_t thread;
    long wrong = 0;
    int key;
    first = one;
    second = other;
    MPI_Comm_create_keyval(NULL, NULL, &key, NULL);
    for (int number = 0; number < KEYS; number++)
        MPI_Comm_create_keyval(NULL, NULL, &keys[number], NULL);
    MPI_Comm_set_attr(first, key, &key);
    pthread_create(&thread, NULL, change, (void *)rounds);
    while (!ended) {
        void *value = NULL;
        int flag = 0;
        int code = MPI_Comm_get_attr(first, key, &value, &flag);
        wrong += code != 0 || !flag || value != &key;
    }
    pthread_join(thread, NULL);
    return wrong;
}

// Threads, mutexes and conditions of C11 as POSIX's; linked into every binary
// by --config=tsan and by nothing else.
//
// GCC's ThreadSanitizer knows POSIX's alone: it crashes in a thread that the C
// library starts for thrd_create(), as librdkafka does. The functions below
// stand in front of the C library's. There a mtx_t is a pthread_mutex_t, and a
// cnd_t a pthread_cond_t (sizes are checked).
#include <errno.h>
#include <pthread.h>
#include <threads.h>

#include <cstdint>

namespace {

static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t));
static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t));
static_assert(sizeof(thrd_t) == sizeof(pthread_t));

pthread_mutex_t* Posix(mtx_t* mutex) {
  return reinterpret_cast<pthread_mutex_t*>(mutex);  // NOLINT
}

pthread_cond_t* Posix(cnd_t* condition) {
  return reinterpret_cast<pthread_cond_t*>(condition);  // NOLINT
}

int ResultOf(int error) {
  switch (error) {
    case 0:
      return thrd_success;
    case ENOMEM:
      return thrd_nomem;
    case ETIMEDOUT:
      return thrd_timedout;
    case EBUSY:
      return thrd_busy;
    default:
      return thrd_error;
  }
}

struct Start {
  thrd_start_t function;
  void* argument;
};

void* RunThread(void* start) {
  const Start given = *static_cast<Start*>(start);
  delete static_cast<Start*>(start);
  const std::intptr_t result = given.function(given.argument);
  return reinterpret_cast<void*>(result);  // NOLINT
}

}  // namespace

extern "C" {

int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  auto* const start = new Start{function, argument};
  const int error = pthread_create(thread, nullptr, RunThread, start);
  if (error != 0) delete start;
  return ResultOf(error);
}

int thrd_join(thrd_t thread, int* result) {
  void* value = nullptr;
  const int error = pthread_join(thread, &value);
  if (error == 0 && result != nullptr) {
    *result = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
  }
  return ResultOf(error);
}

int thrd_detach(thrd_t thread) { return ResultOf(pthread_detach(thread)); }

int mtx_init(mtx_t* mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  const bool is_recursive = (type & mtx_recursive) != 0;
  pthread_mutexattr_settype(&attributes, is_recursive ? PTHREAD_MUTEX_RECURSIVE
                                                      : PTHREAD_MUTEX_DEFAULT);
  const int error = pthread_mutex_init(Posix(mutex), &attributes);
  pthread_mutexattr_destroy(&attributes);
  return ResultOf(error);
}

int mtx_lock(mtx_t* mutex) {
  return ResultOf(pthread_mutex_lock(Posix(mutex)));
}

int mtx_trylock(mtx_t* mutex) {
  return ResultOf(pthread_mutex_trylock(Posix(mutex)));
}

int mtx_unlock(mtx_t* mutex) {
  return ResultOf(pthread_mutex_unlock(Posix(mutex)));
}

void mtx_destroy(mtx_t* mutex) { pthread_mutex_destroy(Posix(mutex)); }

int cnd_init(cnd_t* condition) {
  return ResultOf(pthread_cond_init(Posix(condition), nullptr));
}

int cnd_signal(cnd_t* condition) {
  return ResultOf(pthread_cond_signal(Posix(condition)));
}

int cnd_broadcast(cnd_t* condition) {
  return ResultOf(pthread_cond_broadcast(Posix(condition)));
}

int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return ResultOf(pthread_cond_wait(Posix(condition), Posix(mutex)));
}

int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return ResultOf(
      pthread_cond_timedwait(Posix(condition), Posix(mutex), until));
}

void cnd_destroy(cnd_t* condition) { pthread_cond_destroy(Posix(condition)); }

}  // extern "C"

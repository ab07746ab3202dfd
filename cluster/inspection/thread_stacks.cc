#include "cluster/inspection/thread_stacks.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/debugging/symbolize.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace parasol {
namespace {

constexpr int kMaxFrames = 48;
constexpr size_t kMaxThreads = 512;
constexpr int kMostLimits = 10;
// The handler's own frame, and the one that returns from it.
constexpr int kHandlerFrames = 2;

int StackSignal() { return SIGRTMIN + 6; }

// A question to one thread, which its handler answers in this memory alone: one
// that is late spoils no other thread's answer.
struct Question {
  enum Phase { kAsked, kWriting, kWritten, kGivenUp };
  std::atomic<int> phase = kAsked;
  int count = 0;
  void* frames[kMaxFrames];
};
// The question that is asked; a handler looks at no other.
std::atomic<Question*> asked_question = nullptr;
int stack_written = -1;  // an eventfd

void WriteStack(int, siginfo_t* info, void*) {
  const int saved_errno = errno;
  Question* const question = asked_question.load();
  int asked = Question::kAsked;
  if (question != nullptr && info->si_value.sival_ptr == question &&
      question->phase.compare_exchange_strong(asked, Question::kWriting)) {
    question->count = backtrace(question->frames, kMaxFrames);
    question->phase.store(Question::kWritten);
    const uint64_t one = 1;
    // It can't be full.
    if (write(stack_written, &one, sizeof(one)) < 0) errno = saved_errno;
  }
  errno = saved_errno;
}

void Install() {
  // The first call loads a library, which no handler may do.
  void* frame;
  backtrace(&frame, 1);
  stack_written = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action = {};
  action.sa_sigaction = WriteStack;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(StackSignal(), &action, nullptr);
}

// A clock that nobody sets.
absl::Duration Uptime() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Returns true if the question is answered by then. Uses no lock and no other
// thread, which may be the ones that hang.
bool AwaitAnswer(const Question& question, absl::Duration end) {
  while (question.phase.load() != Question::kWritten) {
    const absl::Duration left = end - Uptime();
    if (left <= absl::ZeroDuration()) return false;
    pollfd polled = {stack_written, POLLIN, 0};
    poll(&polled, 1, 1 + static_cast<int>(absl::ToInt64Milliseconds(left)));
    uint64_t count = 0;
    if (read(stack_written, &count, sizeof(count)) < 0 && errno != EAGAIN) {
      return false;
    }
  }
  return true;
}

// Returns the frames of thread `tid`; none if it does not answer. One call at a
// time.
std::vector<void*> FramesOf(int tid, absl::Duration limit) {
  // Handlers that are late still look at theirs.
  static auto* const unanswered = new std::vector<std::unique_ptr<Question>>;
  auto question = std::make_unique<Question>();
  asked_question.store(question.get());
  siginfo_t info = {};
  info.si_signo = StackSignal();
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = question.get();
  const bool is_sent =
      syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, StackSignal(), &info) == 0;
  if (!is_sent || !AwaitAnswer(*question, Uptime() + limit)) {
    int asked = Question::kAsked;
    const bool is_given_up =
        question->phase.compare_exchange_strong(asked, Question::kGivenUp);
    // One that writes takes no time, once it runs.
    if (is_given_up || !AwaitAnswer(*question, Uptime() + limit)) {
      if (is_sent) unanswered->push_back(std::move(question));
      return {};
    }
  }
  const int skipped = std::min(kHandlerFrames, question->count);
  return std::vector<void*>(question->frames + skipped,
                            question->frames + question->count);
}

std::string NameOfFrame(void* frame, bool is_return) {
  // A return address may be the next function's.
  void* const at = static_cast<char*>(frame) - (is_return ? 1 : 0);
  char name[512];
  if (absl::Symbolize(at, name, sizeof(name))) return name;
  Dl_info info;
  if (dladdr(at, &info) == 0 || info.dli_fname == nullptr) {
    return absl::StrFormat("%p", frame);
  }
  return absl::StrFormat(
      "%s+%#x", std::filesystem::path(info.dli_fname).filename().string(),
      reinterpret_cast<uintptr_t>(frame) -
          reinterpret_cast<uintptr_t>(info.dli_fbase));
}

std::string StackText(const std::vector<void*>& frames) {
  std::string text;
  for (size_t i = 0; i < frames.size(); ++i) {
    absl::StrAppend(&text, "    ", NameOfFrame(frames[i], i > 0), "\n");
  }
  return text;
}

struct ThreadLook {
  int tid = 0;
  std::string name = {};
  char state = '?';
};

ThreadLook LookAtThread(int tid) {
  ThreadLook look = {.tid = tid};
  const std::string path = absl::StrCat("/proc/self/task/", tid);
  std::getline(std::ifstream(path + "/comm"), look.name);
  for (char& c : look.name) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  std::string stat;
  std::getline(std::ifstream(path + "/stat"), stat);
  // "4242 (name) S …": the name may have blanks and brackets.
  const size_t end = stat.rfind(')');
  if (end != std::string::npos && end + 2 < stat.size()) {
    look.state = stat[end + 2];
  }
  return look;
}

const char* StateWord(char state) {
  switch (state) {
    case 'R':
      return "runs";
    case 'D':
      return "waits for a disk";
    case 'S':
      return "waits";
    default:
      return "is stopped";
  }
}

// The threads of this process: the first one, then those that run.
std::vector<ThreadLook> LookAtThreads(int first) {
  std::vector<ThreadLook> threads;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/task", error), end;
       !error && it != end; it.increment(error)) {
    int tid = 0;
    if (absl::SimpleAtoi(it->path().filename().string(), &tid)) {
      threads.push_back(LookAtThread(tid));
    }
  }
  const auto rank = [first](const ThreadLook& thread) {
    if (thread.tid == first) return 0;
    if (thread.state == 'D') return 1;
    return thread.state == 'R' ? 2 : 3;
  };
  std::stable_sort(threads.begin(), threads.end(),
                   [&](const ThreadLook& a, const ThreadLook& b) {
                     return rank(a) < rank(b);
                   });
  return threads;
}

// Threads with one stack.
struct ThreadGroup {
  std::vector<std::string> threads;
  std::string stack;
};

std::string TextOf(const std::vector<ThreadGroup>& groups) {
  std::string text;
  for (const ThreadGroup& group : groups) {
    absl::StrAppend(&text, absl::StrJoin(group.threads, ", "), ":\n",
                    group.stack);
  }
  return text;
}

}  // namespace

std::string StacksOfThreads(int first, absl::Duration limit) {
  static absl::Mutex mu;
  static std::once_flag installed;
  absl::MutexLock lock(&mu);
  std::call_once(installed, Install);
  const absl::Duration deadline = Uptime() + kMostLimits * limit;
  const int self = static_cast<int>(gettid());
  std::vector<ThreadGroup> groups;
  std::map<std::string, size_t> known;  // stack -> group
  const std::vector<ThreadLook> threads = LookAtThreads(first);
  for (size_t i = 0; i < std::min(threads.size(), kMaxThreads); ++i) {
    const ThreadLook& thread = threads[i];
    // This one takes the stacks.
    if (thread.tid == self) continue;
    const bool is_late = Uptime() >= deadline;
    const std::vector<void*> frames =
        is_late ? std::vector<void*>() : FramesOf(thread.tid, limit);
    const std::string stack =
        frames.empty()
            ? (is_late ? "    (not asked: the others took too long)\n"
                       : "    (it does not answer)\n")
            : StackText(frames);
    const auto [it, is_new] = known.try_emplace(stack, groups.size());
    if (is_new) groups.push_back({{}, stack});
    groups[it->second].threads.push_back(absl::StrCat("thread ", thread.tid,
                                                      " \"", thread.name, "\" ",
                                                      StateWord(thread.state)));
  }
  std::string text = TextOf(groups);
  if (threads.size() > kMaxThreads) {
    absl::StrAppend(&text, "(", threads.size() - kMaxThreads,
                    " more threads are not shown)\n");
  }
  return text;
}

}  // namespace parasol

#ifndef PARASOL_LOOP_CORE_MEETING_H_
#define PARASOL_LOOP_CORE_MEETING_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace parasol::loop {

// Where the replicas of a process, each on a thread of its own, come together
// in the middle of their steps: for a sum of gradients, or the new value of a
// variable. All replicas of a step come to the same things in the same order,
// or the step fails on all of them.
//
// Thread-safe. Begin() must not be called while a step is under way.
class Meeting {
 public:
  // `names`: the replicas, for errors: "replica 1 (cpu:1)".
  explicit Meeting(std::vector<std::string> names);

  int num_replicas() const { return static_cast<int>(names_.size()); }

  // Begins a step of all replicas.
  void Begin() ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks until all replicas have come to `what` ("the sum of gradients of
  // sgd"), has the last one of them call `act` with what each has brought, by
  // its number, and returns its result to all. What they bring stays theirs,
  // and is not touched once they return.
  //   InvalidArgument  another replica has come to something else, or has ended
  //                    its step: names both.
  //   any other        a replica's step has failed: with its error.
  absl::Status Join(
      int replica, absl::string_view what, const void* brought,
      absl::FunctionRef<absl::Status(absl::Span<const void* const>)> act)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Notes that a replica's step has ended, with its result. An error ends the
  // waits of all others.
  void End(int replica, const absl::Status& result) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns why the step has failed: its first error; OK if it has not.
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Ends the step with `why`, unless it has failed already.
  void Fail(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Fails the step if a replica that has ended can't come to what the others
  // wait for.
  void CheckNobodyIsMissing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::vector<std::string> names_;

  mutable absl::Mutex mu_;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> has_ended_ ABSL_GUARDED_BY(mu_);  // index: replica
  int ended_ ABSL_GUARDED_BY(mu_) = 0;
  // The thing that replicas have come to, who was the first one, and how many
  // have come.
  std::string what_ ABSL_GUARDED_BY(mu_);
  int first_ ABSL_GUARDED_BY(mu_) = 0;
  int arrived_ ABSL_GUARDED_BY(mu_) = 0;
  // Number of things that all have come to. One that waits sees it grow.
  int64_t done_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<const void*> brought_ ABSL_GUARDED_BY(mu_);  // index: replica
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_MEETING_H_

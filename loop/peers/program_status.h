#ifndef PARASOL_LOOP_PEERS_PROGRAM_STATUS_H_
#define PARASOL_LOOP_PEERS_PROGRAM_STATUS_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/page_server.h"
#include "cluster/trust/trust.h"
#include "proto/chief.pb.h"

namespace parasol {

class JobPage;
class ProgramChief;

// How a program goes, by the chief in its first process, which comes and goes
// with the program's peers. Thread-safe.
class ProgramStatus {
 public:
  ProgramStatus();
  ~ProgramStatus();

  // Takes the chief that is to be asked, which must stay until another call
  // has replaced it; null: there is none now.
  void Show(const ProgramChief* chief) ABSL_LOCKS_EXCLUDED(mu_);

  // The page about the job of a cluster with ps, which the cluster's chief
  // fills.
  JobPage& page() { return *page_; }
  PageServer::Page PageAt(absl::string_view path) const;

  // Returns the chief's status; without one, that the processes have not met.
  wire::JobStatus Status() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::unique_ptr<JobPage> page_;
  mutable absl::Mutex mu_;
  const ProgramChief* chief_ ABSL_GUARDED_BY(mu_) = nullptr;
};

// A server that answers `parasol status` and `parasol why` until it is
// destroyed.
class ProgramStatusServer {
 public:
  // Listens at "host:port". `status` must outlive the server. With `trust`,
  // only who has the job's keys is answered.
  //   InvalidArgument  the address can't be listened on; names it.
  static absl::StatusOr<std::unique_ptr<ProgramStatusServer>> Start(
      const std::string& address, const ProgramStatus& status,
      std::shared_ptr<const Trust> trust);
  virtual ~ProgramStatusServer() = default;

  virtual int port() const = 0;
};

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_PROGRAM_STATUS_H_

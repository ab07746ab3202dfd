#ifndef PARASOL_LOOP_PEERS_PROGRAM_STATUS_H_
#define PARASOL_LOOP_PEERS_PROGRAM_STATUS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/page_server.h"
#include "cluster/trust/trust.h"
#include "proto/chief.pb.h"

namespace parasol {

class JobPage;
class LoneStatus;
class PeerHeartbeats;
class ProgramChief;

// How a program goes, by the chief in its first process, which comes and goes
// with the program's peers; and what the process shows of itself. Thread-safe.
class ProgramStatus {
 public:
  // `clock` must outlive this object.
  explicit ProgramStatus(Clock& clock = Clock::Real());
  ~ProgramStatus();

  // Takes the chief that is to be asked, which must stay until another call
  // has replaced it; null: there is none now.
  void Show(const ProgramChief* chief);

  // The page about the job, which the chief of a cluster with ps fills, if
  // there is one.
  JobPage& page();
  PageServer::Page PageAt(absl::string_view path) const;

  // Returns the chief's status; without one, that the processes have not met.
  wire::JobStatus Status() const;
  // Returns what the process shows to those who look on.
  LoneStatus& shown() const { return *shown_; }

  // Has this process, which is not the first one, tell that one how it goes, at
  // its address.
  void TellFirst(const wire::Task& task, const std::string& address,
                 std::shared_ptr<const Trust> trust);
  // Returns the heartbeats by which it does so; null: there are none.
  PeerHeartbeats* heartbeats() const { return heartbeats_.get(); }

 private:
  Clock& clock_;
  const std::unique_ptr<LoneStatus> shown_;
  std::unique_ptr<PeerHeartbeats> heartbeats_;
};

// A server that answers `parasol status`, `why` and `trace` until it is
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

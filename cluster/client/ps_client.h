#ifndef PARASOL_CLUSTER_CLIENT_PS_CLIENT_H_
#define PARASOL_CLUSTER_CLIENT_PS_CLIENT_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/trust/trust.h"
#include "proto/parameter.pb.h"

namespace parasol {

// The chief's calls to one ps, one attempt each. They block for as long as it
// takes to read or write the shard's file. Calls for another incarnation than
// the last ones, or after one that the ps refused, go over a new connection: a
// process that was replaced may still have its old ones. Thread-safe. Errors
// are the service's (proto/parameter.proto), and
//   Unavailable, DeadlineExceeded  the ps does not answer.
//   Cancelled                      CancelCalls().
class PsClient {
 public:
  virtual ~PsClient() = default;
  // Does not connect yet. `call_deadline` is for each call.
  static std::unique_ptr<PsClient> Create(const std::string& address,
                                          absl::Duration call_deadline,
                                          Callee callee = {});

  virtual absl::StatusOr<wire::LoadResponse> Load(
      const wire::LoadRequest& request) = 0;
  virtual absl::StatusOr<wire::SnapshotResponse> Snapshot(
      const wire::SnapshotRequest& request) = 0;
  // Takes 2 s at most: the shard, and perhaps all training, waits for the
  // Snapshot() that follows.
  virtual absl::StatusOr<wire::PrepareSnapshotResponse> PrepareSnapshot(
      const wire::PrepareSnapshotRequest& request) = 0;

  // Has later calls go to `address`, if it is another one. `host`: index of the
  // ps in whose process the ps acts there, with that one's keys; nullopt: it
  // has its own.
  virtual void MoveTo(const std::string& address, std::optional<int> host) = 0;

  // Ends the calls that are in progress; later ones are not affected.
  virtual void CancelCalls() = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_PS_CLIENT_H_

#ifndef PARASOL_TESTS_BENCHMARK_STAND_IN_STAND_IN_SERVICE_H_
#define PARASOL_TESTS_BENCHMARK_STAND_IN_STAND_IN_SERVICE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/server.h"
#include "proto/chief.grpc.pb.h"
#include "proto/parameter.grpc.pb.h"

namespace parasol {

// Answers of many ps to their chief: each order is carried out at once, and
// they have no values. All are one server, which has a port for each. They know
// each other by the incarnations that orders name. Thread-safe.
class StandInPs : public wire::ParameterService::Service {
 public:
  // Listens on `count` ports of 127.0.0.1. Fails the process if it can't.
  explicit StandInPs(int count);
  ~StandInPs() override;

  // One for each ps.
  const std::vector<int>& ports() const { return ports_; }
  // Returns true if the ps of this incarnation has been loaded.
  bool IsLoaded(uint64_t incarnation) const ABSL_LOCKS_EXCLUDED(mu_);

  grpc::Status Load(grpc::ServerContext*, const wire::LoadRequest* request,
                    wire::LoadResponse* response) override
      ABSL_LOCKS_EXCLUDED(mu_);
  grpc::Status Snapshot(grpc::ServerContext*,
                        const wire::SnapshotRequest* request,
                        wire::SnapshotResponse* response) override;
  grpc::Status PrepareSnapshot(
      grpc::ServerContext*, const wire::PrepareSnapshotRequest* request,
      wire::PrepareSnapshotResponse* response) override;

 private:
  std::vector<int> ports_;
  mutable absl::Mutex mu_;
  std::set<uint64_t> loaded_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<grpc::Server> server_;
};

// A chief that hears which process a ps is, and has no job for it: it answers
// each registration with UNAVAILABLE, and the ps asks again. Thread-safe.
class StandInChief : public wire::ChiefService::Service {
 public:
  // Listens on a port of 127.0.0.1. Fails the process if it can't.
  StandInChief();
  ~StandInChief() override;

  int port() const { return port_; }
  // Returns the incarnation of the first ps that registers; 0 if none does
  // within `timeout`.
  uint64_t AwaitPs(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mu_);

  grpc::Status Register(grpc::ServerContext*,
                        const wire::RegisterRequest* request,
                        wire::RegisterResponse* response) override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  int port_ = 0;
  mutable absl::Mutex mu_;
  uint64_t incarnation_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_STAND_IN_STAND_IN_SERVICE_H_

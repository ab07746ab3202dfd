#include "tests/benchmark/stand_in/stand_in_service.h"

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace parasol {

StandInPs::StandInPs(int count) : ports_(count) {
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  for (int& port : ports_) {
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
  }
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr);
}

StandInPs::~StandInPs() {
  server_->Shutdown(absl::ToChronoTime(absl::UnixEpoch()));
}

bool StandInPs::IsLoaded(uint64_t incarnation) const {
  absl::MutexLock lock(&mu_);
  return loaded_.contains(incarnation);
}

grpc::Status StandInPs::Load(grpc::ServerContext*,
                             const wire::LoadRequest* request,
                             wire::LoadResponse*) {
  absl::MutexLock lock(&mu_);
  loaded_.insert(request->order().incarnation());
  return grpc::Status::OK;
}

grpc::Status StandInPs::Snapshot(grpc::ServerContext*,
                                 const wire::SnapshotRequest* request,
                                 wire::SnapshotResponse* response) {
  const std::string bytes = "no values";
  std::ofstream(absl::StrCat(request->directory(), "/", request->file_name()))
      << bytes;
  response->set_bytes(bytes.size());
  response->set_crc32c(Crc32cOf(bytes));
  return grpc::Status::OK;
}

grpc::Status StandInPs::PrepareSnapshot(
    grpc::ServerContext*, const wire::PrepareSnapshotRequest*,
    wire::PrepareSnapshotResponse* response) {
  response->set_min_updates(INT64_MAX);
  response->set_max_updates(0);
  return grpc::Status::OK;
}

StandInChief::StandInChief() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr);
}

StandInChief::~StandInChief() {
  server_->Shutdown(absl::ToChronoTime(absl::UnixEpoch()));
}

uint64_t StandInChief::AwaitPs(absl::Duration timeout) const {
  absl::MutexLock lock(&mu_);
  const auto has_come = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return incarnation_ != 0;
  };
  mu_.AwaitWithTimeout(absl::Condition(&has_come), timeout);
  return incarnation_;
}

grpc::Status StandInChief::Register(grpc::ServerContext*,
                                    const wire::RegisterRequest* request,
                                    wire::RegisterResponse*) {
  absl::MutexLock lock(&mu_);
  if (incarnation_ == 0) incarnation_ = request->task().incarnation();
  return {grpc::StatusCode::UNAVAILABLE, "a stand-in has no job"};
}

}  // namespace parasol

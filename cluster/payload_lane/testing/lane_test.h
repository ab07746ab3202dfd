#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_TESTING_LANE_TEST_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_TESTING_LANE_TEST_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/descriptor.h"
#include "cluster/payload_lane/lane_socket.h"
#include "cluster/payload_lane/payload_connection.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/payload_lane/payload_lane.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/payload_lane/socket_loop.h"
#include "cluster/trust/trust.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"

// Both ends of lanes in this process, with real sockets on loopback.
namespace parasol {

// Returns a message of these bytes, in so many slices at most.
grpc::ByteBuffer BufferOf(const std::string& bytes, size_t pieces = 1);
std::string BytesOf(const grpc::ByteBuffer& buffer);

// An end that keeps what it reads, and waits for what the test wants. Used by
// the test's thread.
class LaneEnd : private PayloadLane::Observer {
 public:
  // `loop` must outlive the end.
  explicit LaneEnd(SocketLoop& loop) : loop_(loop) {}
  ~LaneEnd() override;

  void Open(LaneSocket socket);

  // Has the end close its lane when a read fails, and be gone then. Called
  // before Open().
  void CloseOnError() { closes_on_error_ = true; }

  absl::Status Write(const grpc::ByteBuffer& message);
  void BeginWrite(const grpc::ByteBuffer& message);
  void BeginWrite(const std::vector<grpc::ByteBuffer>& messages);
  absl::Status AwaitWrite();
  // Returns the next message, or why there is none.
  absl::StatusOr<std::string> Read();

  void Close();
  void Linger();
  // Has another thread receive ahead of the loop's, which waits for it, after
  // each of `steps`.
  void ReceiveAhead(const std::vector<std::function<void()>>& steps);

 private:
  void OnPayloadRead(const absl::Status& status,
                     grpc::ByteBuffer message) override;
  void OnPayloadWritten(const absl::Status& status) override;
  void AtLoop(const std::function<void()>& work);

  SocketLoop& loop_;
  std::shared_ptr<PayloadLane> lane_;
  bool closes_on_error_ = false;
  bool is_gone_ = false;  // used by the loop's thread
  absl::Mutex mu_;
  std::optional<absl::Status> written_ ABSL_GUARDED_BY(mu_);
  std::deque<absl::StatusOr<std::string>> read_ ABSL_GUARDED_BY(mu_);
};

// One result of a callback, from another thread.
template <typename T>
class Result {
 public:
  void Set(T value) {
    value_.emplace(std::move(value));
    done_.Notify();
  }
  T& Get() {
    done_.WaitForNotification();
    return *value_;
  }
  bool HasBeenSet() const { return done_.HasBeenNotified(); }

 private:
  absl::Notification done_;
  std::optional<T> value_;
};
using Taken = Result<absl::StatusOr<Descriptor>>;

// A worker, and a host with one loop, which a test connects.
class LaneTest : public testing::Test {
 protected:
  // `trust` is the ps's keys.
  explicit LaneTest(std::shared_ptr<const Trust> trust = nullptr);

  PayloadOffer Expect(Taken& taken);
  void Connect(const PayloadOffer& offer, Taken& connected,
               const std::string& peer = "ipv4:127.0.0.1:1");
  // Opens both ends of a lane.
  void OpenEnds();
  // Connects to the host's port, and says nothing.
  Descriptor ConnectStranger();
  // Returns true if the other side closes the connection.
  static bool IsClosed(const Descriptor& socket);

  std::unique_ptr<PayloadHost> host_;
  std::shared_ptr<PayloadConnection> connection_;  // used by the loop's thread
  SocketLoop loop_;
  // The host's only loop.
  SocketLoop& host_loop_;
  LaneEnd worker_{loop_};
  LaneEnd ps_{host_loop_};
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_TESTING_LANE_TEST_H_

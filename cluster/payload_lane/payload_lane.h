#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_LANE_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_LANE_H_

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster/payload_lane/frame_reader.h"
#include "cluster/payload_lane/lane_socket.h"
#include "cluster/payload_lane/receive_allowance.h"
#include "cluster/payload_lane/socket_loop.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace parasol {

// One end of a lane: a TCP connection, perhaps in TLS (LaneSocket), that
// carries an Exchange or Follow stream's messages in both directions, as frames
// (FrameReader). A message is sent from where its payloads lie, with one call
// for what the kernel takes at once, and received in one piece, or where the
// observer says (docs/design/wire.md).
//
// One read and one write are under way at most. Each completes exactly once: a
// write in Write() if the kernel takes all of it there, everything else on the
// loop's thread. Both complete with an error when the lane is closed or broken.
class PayloadLane : public std::enable_shared_from_this<PayloadLane>,
                    private SocketLoop::Handler {
 public:
  // Called on the loop's thread, FindTargets() also on the thread of
  // ReceiveAhead(); one call at a time.
  class Observer : public TargetFinder {
   public:
    // Chooses a target for no part: all bytes go to the message's own memory.
    std::optional<FrameTargets> FindTargets(absl::string_view,
                                            size_t) override {
      return FrameTargets();
    }
    // A read has completed: with a message, or with an error.
    //   Unavailable        the peer has closed the connection, or it is broken.
    //   Unauthenticated    another task than the expected one is the peer.
    //   InvalidArgument    the peer has sent what is no frame.
    //   ResourceExhausted  the allowance has no room for what it sends.
    //   Cancelled          Close() or Linger().
    virtual void OnPayloadRead(const absl::Status& status,
                               grpc::ByteBuffer message) = 0;
    // A write has completed, later than in Write(); `status` as above.
    virtual void OnPayloadWritten(const absl::Status& status) = 0;
  };

  // Makes the end that `socket` is, whose next bytes are frames. Called on the
  // thread of `loop`, which must outlive the lane, as `observer` must outlive
  // Close(). Messages that are being received count in `allowance`, if it is
  // not null.
  static std::shared_ptr<PayloadLane> Make(
      LaneSocket socket, SocketLoop& loop, Observer& observer,
      ReceiveAllowance* allowance = nullptr);
  ~PayloadLane() override = default;

  // Begins a read. Called on the loop's thread.
  void Read();
  // Receives what is there of the message that is being read, without
  // delivering it. Returns true if that is all of it. Called on the loop's
  // thread, or on another one that the loop's waits for.
  bool ReceiveAhead();
  // Begins a write of messages, one after the other, of which it sends on the
  // caller's thread what the kernel takes at once. Returns true if that is all
  // of it: the write is complete, and the observer is not told. Does nothing
  // after Close(). Any thread may call it.
  [[nodiscard]] bool Write(absl::Span<const grpc::ByteBuffer> messages)
      ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] bool Write(const grpc::ByteBuffer& message)
      ABSL_LOCKS_EXCLUDED(mu_) {
    return Write(absl::MakeConstSpan(&message, 1));
  }
  // Ends the lane so that all that was written arrives: completes what is under
  // way before it returns, as Close() does, and closes the connection when the
  // peer has, or after `limit`. What the peer still sends is dropped; closing
  // at once would make the kernel drop what it has yet to deliver. Called on
  // the loop's thread.
  void Linger(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);
  // Closes the connection and completes what is under way before it returns;
  // the observer is not called later. Called on the loop's thread; may be
  // called twice.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  PayloadLane(LaneSocket socket, SocketLoop& loop, Observer& observer,
              ReceiveAllowance* allowance);

  void OnEvents(uint32_t events) override ABSL_LOCKS_EXCLUDED(mu_);
  // Receives and delivers while a read is under way and bytes are there.
  void Receive() ABSL_LOCKS_EXCLUDED(mu_);
  // Receives once what is there, perhaps nothing.
  // Errors are LaneSocket::Receive()'s.
  absl::Status ReceiveSome();
  // Returns true if a message, or an error, has completed the read.
  bool CompleteRead();
  // Makes the messages the pieces to be sent.
  void LayOut(absl::Span<const grpc::ByteBuffer> messages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives the messages' memory back.
  void LetGo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends what is left of the write. Returns true if the write has completed:
  // all is sent, or the lane is broken (broken_).
  bool Send() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Completes a write that has failed, in the loop.
  void TellThatSendingFailed() ABSL_LOCKS_EXCLUDED(mu_);
  void NoteSent(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Break(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  // Completes what is under way with an error.
  void Complete(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  void Disconnect();
  // Drops what the peer sends; disconnects when it has closed the connection.
  void Drop();

  LaneSocket socket_;
  SocketLoop& loop_;
  Observer& observer_;

  // The following are used on the loop's thread only.
  FrameReader reader_;
  bool reading_ = false;
  bool readable_ = true;  // unless the last receive has found nothing
  bool lingers_ = false;
  bool is_watched_ = true;

  // True while a write waits for room in the socket.
  std::atomic<bool> wants_room_ = false;

  absl::Mutex mu_;
  absl::Status broken_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // The messages' lengths, lowest byte first, and their slices.
  std::vector<uint64_t> lengths_ ABSL_GUARDED_BY(mu_);
  std::vector<std::vector<grpc::Slice>> slices_ ABSL_GUARDED_BY(mu_);
  // The lengths, each with the slices behind it; pieces_[next_piece_] is the
  // first that is not sent.
  std::vector<iovec> pieces_ ABSL_GUARDED_BY(mu_);
  size_t next_piece_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_LANE_H_

#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_CONNECTION_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/payload_lane/socket_loop.h"

namespace parasol {

// A worker's attempt to connect to the lane that a ps offers. Used on the
// loop's thread only.
class PayloadConnection
    : public std::enable_shared_from_this<PayloadConnection>,
      private SocketLoop::Handler {
 public:
  // Time that the connection and the ps's welcome may take together.
  static constexpr absl::Duration kLimit = absl::Seconds(3);

  // Takes the connection, from which frames come next; or why there is none.
  //   Unavailable  the port can't be reached, or one of the two ends has not
  //                proven that it has the offer's secret.
  //   Cancelled    Cancel().
  using Connected = std::function<void(absl::StatusOr<Descriptor>)>;

  // `peer` is the ps's address as gRPC names the peer of a call
  // ("ipv4:10.0.0.7:2222"): the machine that the call has reached. `connected`
  // is called once, on the loop's thread, also from Start().
  static std::shared_ptr<PayloadConnection> Start(absl::string_view peer,
                                                  const PayloadOffer& offer,
                                                  SocketLoop& loop,
                                                  Connected connected);
  ~PayloadConnection() override = default;

  // Ends the attempt, if it has not ended.
  void Cancel() { End(absl::CancelledError("cancelled")); }

 private:
  PayloadConnection(const PayloadOffer& offer, SocketLoop& loop,
                    Connected connected)
      : offer_(offer), loop_(loop), connected_(std::move(connected)) {}

  absl::Status Begin(absl::string_view peer);
  void OnEvents(uint32_t events) override;
  // Says hello, proves itself and hears the welcome, as far as possible now.
  absl::Status Advance();
  absl::Status Say(absl::string_view bytes);
  // Answers the ps's proof with this end's.
  absl::Status Prove();
  void End(const absl::Status& status);

  const PayloadOffer offer_;
  SocketLoop& loop_;
  Connected connected_;  // null when it was called
  Descriptor socket_;
  bool is_watched_ = false;
  std::string hello_;  // empty until it is said
  std::string received_;
  bool has_proven_ = false;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_CONNECTION_H_

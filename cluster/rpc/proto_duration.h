#ifndef PARASOL_CLUSTER_RPC_PROTO_DURATION_H_
#define PARASOL_CLUSTER_RPC_PROTO_DURATION_H_

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"

namespace parasol {

// Convert a duration to and from its message. Fractions of a nanosecond are cut
// off.
inline google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  proto.set_nanos(absl::ToInt64Nanoseconds(duration));
  return proto;
}

inline absl::Duration FromProto(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

// Returns the duration in seconds.
inline double SecondsIn(const google::protobuf::Duration& proto) {
  return absl::ToDoubleSeconds(FromProto(proto));
}

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_PROTO_DURATION_H_

#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_PACING_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_PACING_H_

#include <sys/socket.h>

#include <string>

namespace parasol {

// Congestion control of connections within a machine. An algorithm such as bbr
// paces packets by timers, which spare the queues of a network; within a
// machine there is none, and the timers halve the throughput. Connections to
// other machines keep the system's algorithm. Nothing changes if that does not
// pace.
//
// A connection that has begun with pacing keeps it whatever its algorithm is
// set to later. So both ends are set before they begin.

// Returns the system's algorithm for new sockets; empty if it can't be told.
std::string SystemCongestionControl();
// Returns the algorithm of a TCP socket; empty if it can't be told.
std::string CongestionControlOf(int fd);

// Returns true if packets to `peer` do not leave this machine (or this network
// namespace).
bool IsWithinMachine(const sockaddr_storage& peer);

// Has a socket that will be connected to `peer` send without pacing if `peer`
// is on this machine.
void AvoidPacing(int fd, const sockaddr_storage& peer);
// Has connections that a listening socket takes begin without pacing.
void AcceptWithoutPacing(int listening);
// Gives an accepted connection the system's algorithm if its peer is on another
// machine.
void PaceIfRemote(int accepted);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_PACING_H_

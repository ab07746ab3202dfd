#ifndef PARASOL_TESTS_BENCHMARK_PARASOL_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_PARASOL_CONTENDER_H_

#include <memory>
#include <string>
#include <vector>

#include "cluster/trust/trust.h"
#include "parameters/client/parameter_client.h"
#include "proto/parameter.pb.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"
#include "tests/benchmark/contender.h"
#include "tests/benchmark/contents.h"

namespace parasol {

// Returns the certificates of a task of the benchmark.
std::shared_ptr<const Trust> TrustOfBenchmark(PeerRole role);

// Makes a contender of a ParameterClient and a ps, which has keys if the client
// has.
Contender MakeParasolContender(const std::string& name,
                               const Contents& contents,
                               const ParameterClient::Options& options);

// Makes a contender whose ps keeps a journal in the directory for temporary
// files.
Contender MakeJournalContender(const std::string& name,
                               const Contents& contents,
                               const ParameterClient::Options& options,
                               wire::LoadRequest::Journal journal);

// Makes a contender whose ps writes one checkpoint after the other, in the
// directory for temporary files.
Contender MakeCheckpointContender(const std::string& name,
                                  const Contents& contents,
                                  const ParameterClient::Options& options);

// Makes a contender whose shard has a standby, in another process, and perhaps
// a journal, too.
Contender MakeReplicatedContender(
    const std::string& name, const Contents& contents,
    const ParameterClient::Options& options,
    wire::LoadRequest::Journal journal = wire::LoadRequest::NONE);

// Makes a contender that sends everything to two ps which know nothing of each
// other: the least that a shard with a standby can cost.
Contender MakeMirroredContender(const std::string& name,
                                const Contents& contents,
                                const ParameterClient::Options& options);

// Returns the directory of a ps's journals of the kind, for temporary files.
// One is there at a time: the next server's follows nothing of it.
std::string JournalDirectory(wire::LoadRequest::Journal journal);

// Returns a session with the ps that listens on `port`.
std::vector<std::unique_ptr<Session>> ConnectParasol(
    int port, const Contents& contents,
    const ParameterClient::Options& options);

[[noreturn]] void ServeParasol(
    const Contents& contents, std::shared_ptr<const Trust> trust,
    wire::LoadRequest::Journal journal = wire::LoadRequest::NONE);
// Returns the order to load the contents on one shard.
wire::LoadRequest LoadOf(const Contents& contents);
// Serves a ps that is loaded.
[[noreturn]] void ServeLoaded(ParameterServer& server, PsMetrics& metrics,
                              std::shared_ptr<const Trust> trust);
[[noreturn]] void ServeCheckpoints(const Contents& contents);
// A ps that has the standby of a shard, and one whose shard has one there.
[[noreturn]] void ServeStandby();
[[noreturn]] void ServeReplicated(const Contents& contents,
                                  wire::LoadRequest::Journal journal);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_PARASOL_CONTENDER_H_

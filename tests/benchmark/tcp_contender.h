#ifndef PARASOL_TESTS_BENCHMARK_TCP_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_TCP_CONTENDER_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/benchmark/contender.h"
#include "tests/benchmark/contents.h"
#include "tests/benchmark/plain_tables.h"

namespace parasol {

// Makes the contender that bounds the network: tensors over TCP with a fixed
// header and no other protocol. The sender does not wait; the receiver applies
// gradients from a buffer that stays in the cache. Each stream is one session,
// with a thread on both sides.
Contender MakeTcpContender(const std::string& name, const Contents& contents,
                           int streams,
                           RowStore store = RowStore::kOpenAddressing);

// Returns sessions with the server that listens on `port`.
std::vector<std::unique_ptr<Session>> ConnectTcp(int port, int streams);

// Serves until killed. Each connection has a sparse table of its own, which
// needs no lock.
[[noreturn]] void ServeTcp(const Contents& contents, RowStore store);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_TCP_CONTENDER_H_

#ifndef PARASOL_TESTS_BENCHMARK_TCP_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_TCP_CONTENDER_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/benchmark/contender.h"
#include "tests/benchmark/contents.h"
#include "tests/benchmark/plain_tables.h"

namespace parasol {

// The floor of the network: tensors over TCP without any protocol but a fixed
// header. The sender does not wait; the receiver applies from a buffer that
// stays in the cache. One session, with its thread on both sides, per stream.
Contender MakeTcpContender(const std::string& name, const Contents& contents,
                           int streams,
                           RowStore store = RowStore::kOpenAddressing);

// Sessions with the server that listens on `port`.
std::vector<std::unique_ptr<Session>> ConnectTcp(int port, int streams);

// Each connection has a sparse table of its own, which needs no lock.
[[noreturn]] void ServeTcp(const Contents& contents, RowStore store);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_TCP_CONTENDER_H_

// The MPI transport: the workers are the ranks of MPI_COMM_WORLD, one process each.
//
//   MpiSession session(&argc, &argv);
//   auto transport = make_mpi_transport(session);   // on every rank
//   Handle handle = transport->post(exchange, stream);
//
// One thread per process makes all MPI calls; it sleeps between looks when nothing moves. Strided
// blocks are derived datatypes. A send to oneself is a transfer like any other; the two ends of a
// transfer may cut their bytes into rows differently. A view has at most 2^31 - 1 rows, and bytes
// in a row; one that has more fails its stream with a ConfigError.
//
// Order: posts of one tag match in the order in which the streams reach them, which on one stream
// is the order of the posts. Steps are told apart modulo 2^12.
//
// Failure: the rank that notices tells all others, and every later error carries the cause. It is
// an exchange not complete within the deadline (MPI does not say when the peer's half has come, so
// this includes moving the data; and a small send is complete once MPI has buffered it), a message
// of another size (noticed by its receiver), abort(), a stream that failed before its post or wait,
// a transport destroyed before its exchanges are complete, or an error of MPI. A peer that died or
// left in peace while others wait for it is noticed by their deadline.
//
// Memory: after a failure, receives are cancelled and what has begun is given up to a second to
// end. If requests are left even then, this process makes no MPI call any more, and nothing writes
// to its memory: OpenMPI's shared-memory and TCP transports move data in MPI calls only. Adapters
// that write by themselves (RDMA) may still do so: end the job then (MpiSession::end_job).
//
// Destruction ends in any state. One transport at a time; streams must be TaskQueues. Records are
// kept (64 bytes an exchange) until they are taken.
#pragma once

#include <memory>

#include "libra/transport/mpi/session.h"
#include "libra/transport/transport.h"

namespace libra {

/// Collective: every rank calls it. Throws ConfigError if the deadline is not positive or a
/// transport exists already, TransportError if an earlier failure left MPI unusable.
std::unique_ptr<Transport> make_mpi_transport(const MpiSession& session,
                                              const TransportOptions& options = {});

}  // namespace libra

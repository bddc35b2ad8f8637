#include "api/fan_out.h"

#include <iterator>
#include <utility>

namespace muster::api {

namespace {

constexpr std::size_t kPiece = 32;
constexpr std::size_t kPieceBytes = std::size_t{1}
                                    << 20;  // the server cuts off who is too far behind
constexpr std::size_t kMostBehindBytes = std::size_t{1} << 20;

}  // namespace

void FanOut::Send(net::HttpServer& server, std::vector<Delivery> deliveries) {
  server.Post([self = shared_from_this(), &server, deliveries = std::move(deliveries)]() mutable {
    std::move(deliveries.begin(), deliveries.end(), std::back_inserter(self->waiting_));
    if (!std::exchange(self->busy_, true)) self->Piece(server);
  });
}

void FanOut::Piece(net::HttpServer& server) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < kPiece && bytes < kPieceBytes && !waiting_.empty(); ++i) {
    const auto [to, text] = std::move(waiting_.front());
    waiting_.pop_front();
    bytes += text->size();
    if (to->Queued() > kMostBehindBytes || !to->Write(*text)) to->Abort();
  }
  busy_ = !waiting_.empty();
  if (busy_) server.Post([self = shared_from_this(), &server] { self->Piece(server); });
}

}  // namespace muster::api

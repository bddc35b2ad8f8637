#include "api/meter.h"

#include <algorithm>
#include <utility>

namespace muster::api {

class Meter::Metered final : public net::Exchange {
 public:
  Metered(std::shared_ptr<Meter> meter, std::shared_ptr<net::Exchange> inner, std::string operation)
      : meter_(std::move(meter)),
        inner_(std::move(inner)),
        operation_(std::move(operation)),
        begun_ns_(meter_->clock_.MonotonicNs()) {}
  ~Metered() override {
    if (streaming_) --meter_->streams_;
    if (!answered_) meter_->Dropped(operation_);
  }
  Metered(const Metered&) = delete;
  Metered& operator=(const Metered&) = delete;

  void Reply(net::Response response) override {
    Note(response.status);
    inner_->Reply(std::move(response));
  }
  void BeginStream(int status, std::string content_type,
                   std::vector<net::Header> headers) override {
    if (Note(status)) {
      streaming_ = true;
      ++meter_->streams_;
    }
    inner_->BeginStream(status, std::move(content_type), std::move(headers));
  }
  void SetEndless() override { inner_->SetEndless(); }
  bool Write(std::string chunk) override { return inner_->Write(std::move(chunk)); }
  std::size_t Queued() const override { return inner_->Queued(); }
  void Finish() override { inner_->Finish(); }
  void Abort() override { inner_->Abort(); }
  bool gone() const override { return inner_->gone(); }
  bool over() const override { return inner_->over(); }
  std::shared_ptr<net::WebSocket> Upgrade(net::WebSocketHandlers handlers) override {
    auto socket = inner_->Upgrade(std::move(handlers));
    if (socket != nullptr && Note(101)) ++meter_->sockets_;
    return socket;
  }

 private:
  bool Note(int status) {
    if (answered_.exchange(true)) return false;
    meter_->Answered(operation_, status, begun_ns_);
    return true;
  }

  std::shared_ptr<Meter> meter_;
  std::shared_ptr<net::Exchange> inner_;
  std::string operation_;
  std::int64_t begun_ns_;
  std::atomic<bool> answered_ = false;
  std::atomic<bool> streaming_ = false;
};

std::shared_ptr<net::Exchange> Meter::Watch(std::shared_ptr<net::Exchange> exchange,
                                            const std::string& operation) {
  {
    const std::lock_guard lock(mutex_);
    ++rows_[operation].requests;
  }
  return std::make_shared<Metered>(shared_from_this(), std::move(exchange), operation);
}

void Meter::Answered(const std::string& operation, int status, std::int64_t begun_ns) {
  const auto took_ns = clock_.MonotonicNs() - begun_ns;
  const std::lock_guard lock(mutex_);
  auto& row = rows_[operation];
  ++row.answers[static_cast<std::size_t>(std::clamp(status / 100, 0, 5))];
  row.took.Add(took_ns);
}

void Meter::Refused(int status) {
  const std::lock_guard lock(mutex_);
  auto& row = rows_[""];
  ++row.requests;
  ++row.answers[static_cast<std::size_t>(std::clamp(status / 100, 0, 5))];
}

// The server answers it with 500, or cuts it off; the clock may be gone by now.
void Meter::Dropped(const std::string& operation) {
  const std::lock_guard lock(mutex_);
  ++rows_[operation].answers[5];
}

std::map<std::string, Meter::Row> Meter::Rows() const {
  const std::lock_guard lock(mutex_);
  return rows_;
}

}  // namespace muster::api

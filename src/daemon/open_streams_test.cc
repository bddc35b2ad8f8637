// What stays open follows the rights of its caller: the whole of the daemon but its main.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "api/api.h"
#include "base/temp_folder.h"
#include "net/http_client.h"
#include "state/sqlite_store.h"

namespace muster::daemon {
namespace {

constexpr int kPatienceMs = 30'000;

class OpenStreams : public testing::Test {
 protected:
  OpenStreams() {
    store_ = std::move(*state::OpenSqlite(folder_ / "journal.db"));
    control::Controller::Ports ports{clock_, *store_, {}, nullptr};
    ports.written = [this](const auto& control, auto records) {
      if (auto* api = watching_.load()) api->Written(control, records);
    };
    controller_ = std::make_unique<control::Controller>(std::move(ports), control::Settings());
    EXPECT_TRUE(controller_->Recover().has_value());
    model::Queue vision;
    vision.name = "vision";
    vision.members = {{"group:vision", "viewer"}};
    model::Queue rest = vision;
    rest.name = "default";
    EXPECT_TRUE(controller_->ApplyQueues({vision, rest}, "test").has_value());
    service_ = std::make_unique<control::Service>(*controller_, clock_, std::vector<int>{},
                                                  [](const std::string&) {});
    api::ApiSeams seams;
    seams.judged_every_ms = 5;
    seams.look_up = [this](const auto&) -> Result<control::Caller> {
      control::Caller ana;
      ana.user = "ana";
      if (in_group_) ana.groups = {"vision"};
      return ana;
    };
    api_ = std::move(*api::Api::Make(*service_, clock_, {"test"}, seams));
    net::ServerOptions listen;
    listen.unix_path = folder_ / "s";
    server_ = std::move(*net::HttpServer::Start(listen, [this](auto request, auto exchange) {
      api_->Handle(std::move(request), std::move(exchange));
    }));
    watching_ = api_.get();
    api_->Attach(*server_);
  }
  ~OpenStreams() override {
    server_->Retire();
    service_->Stop();
    api_->Close();
    server_.reset();
  }

  // Advanced on the thread that reads it, with the server's and the controller's between turns.
  class SharedClock final : public Clock {
   public:
    std::int64_t WallMs() override { return now_ms_; }
    std::int64_t MonotonicNs() override { return now_ms_ * 1'000'000; }
    void Advance(std::int64_t ms) { now_ms_ += ms; }

   private:
    std::atomic<std::int64_t> now_ms_ = 1'000'000;
  };

  TempFolder folder_;
  SharedClock clock_;
  std::atomic<bool> in_group_ = true;
  std::atomic<api::Api*> watching_ = nullptr;
  std::unique_ptr<state::Store> store_;
  std::unique_ptr<control::Controller> controller_;
  std::unique_ptr<control::Service> service_;
  std::unique_ptr<api::Api> api_;
  std::unique_ptr<net::HttpServer> server_;
};

TEST_F(OpenStreams, AGroupThatIsLeftEndsWhatItHadOpened) {
  net::HttpClient client({.unix_path = folder_ / "s"});
  net::Request watch{.path = "/api/v1/events", .query = {{"watch", "1"}}};
  const auto ended = client.Stream(watch, kPatienceMs, [this](std::string_view) {
    in_group_ = false;
    clock_.Advance(61'000);  // what is remembered of accounts is a minute old
    return true;
  });
  ASSERT_FALSE(ended.has_value()) << "it is cut, not ended";
  EXPECT_EQ(ended.error().code, ErrorCode::kUnavailable);
  const auto again = client.Send(watch, kPatienceMs);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->status, 403);
}

}  // namespace
}  // namespace muster::daemon

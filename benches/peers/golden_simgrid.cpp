// The golden micro-workload in SimGrid (s4u).
//
// Usage: golden_simgrid [messages|lean] [n]
//
// `messages` uses actors and mailboxes over SimGrid's constant-time network model, the cheapest of its models:
// it has no links and no bandwidth sharing, and every message takes two units. (The CM02 model over links with a
// latency of two computes the same digests more slowly.) `lean` has no messages: the clients sleep for the delays and
// synchronise with the servers by semaphores, which is about the minimum work of SimGrid for this workload if clients
// and servers are actors.

#include <simgrid/s4u.hpp>
#include <xbt/log.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

constexpr int NODES = 16;

// In the models of SimGrid 3.32, a message of 0 bytes arrives at the next event, regardless of its latency.
constexpr uint64_t MESSAGE_BYTES = 1;

struct Totals {
  double last_reply   = 0;
  double response_sum = 0;
  void add(double now, double responses)
  {
    last_reply = std::max(last_reply, now);
    response_sum += responses;
  }
} totals;

struct Random {
  uint64_t state;
  explicit Random(int client) : state(static_cast<uint64_t>(client) * 2654435761ULL + 1) {}
  double compute()
  {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return 1 + static_cast<double>((state >> 33) % 1000000) * 1e-6;
  }
};

struct Request {
  sg4::Mailbox* reply_to;
};

void messages(const std::vector<sg4::Host*>& clients, const std::vector<sg4::Host*>& servers, long n)
{
  static std::vector<sg4::Mailbox*> inboxes;
  for (int i = 0; i < NODES; i++)
    inboxes.push_back(sg4::Mailbox::by_name("server" + std::to_string(i)));
  for (int i = 0; i < NODES; i++) {
    sg4::Actor::create("server", servers[i], [i] {
      // With a permanent receiver, requests are in transit while the server serves another request.
      inboxes[i]->set_receiver(sg4::Actor::self());
      while (true) {
        auto* request = inboxes[i]->get<Request>();
        sg4::this_actor::sleep_for(3);
        request->reply_to->put_init(request, MESSAGE_BYTES)->detach();
      }
    })->daemonize();
  }
  for (int i = 0; i < NODES; i++) {
    sg4::Actor::create("client", clients[i], [i, n] {
      auto* inbox = sg4::Mailbox::by_name("client" + std::to_string(i));
      Request request{inbox};
      Random random(i);
      double responses = 0;
      for (long k = 0; k < n; k++) {
        sg4::this_actor::sleep_for(random.compute());
        const double sent = sg4::Engine::get_clock();
        inboxes[(i + k) % NODES]->put_init(&request, MESSAGE_BYTES)->detach();
        inbox->get<Request>();
        responses += sg4::Engine::get_clock() - sent;
      }
      totals.add(sg4::Engine::get_clock(), responses);
    });
  }
}

void lean(const std::vector<sg4::Host*>& clients, const std::vector<sg4::Host*>& servers, long n)
{
  static std::vector<sg4::SemaphorePtr> arrivals;
  static std::vector<sg4::SemaphorePtr> replies;
  static std::vector<std::deque<int>> queues(NODES);
  for (int i = 0; i < NODES; i++) {
    arrivals.push_back(sg4::Semaphore::create(0));
    replies.push_back(sg4::Semaphore::create(0));
  }
  for (int i = 0; i < NODES; i++) {
    sg4::Actor::create("server", servers[i], [i] {
      while (true) {
        arrivals[i]->acquire();
        const int client = queues[i].front();
        queues[i].pop_front();
        sg4::this_actor::sleep_for(3);
        replies[client]->release();
      }
    })->daemonize();
  }
  for (int i = 0; i < NODES; i++) {
    sg4::Actor::create("client", clients[i], [i, n] {
      Random random(i);
      double responses = 0;
      for (long k = 0; k < n; k++) {
        sg4::this_actor::sleep_for(random.compute());
        const double sent = sg4::Engine::get_clock();
        sg4::this_actor::sleep_for(2);
        queues[(i + k) % NODES].push_back(i);
        arrivals[(i + k) % NODES]->release();
        replies[i]->acquire();
        sg4::this_actor::sleep_for(2);
        responses += sg4::Engine::get_clock() - sent;
      }
      totals.add(sg4::Engine::get_clock(), responses);
    });
  }
}

} // namespace

int main(int argc, char** argv)
{
  xbt_log_control_set("xbt_cfg.threshold:warning");
  sg4::Engine engine(&argc, argv);
  const std::string idiom = argc > 1 ? argv[1] : "messages";
  const long n            = argc > 2 ? std::atol(argv[2]) : 20000;

  const auto started = std::chrono::steady_clock::now();
  sg4::Engine::set_config("network/model:Constant");
  sg4::Engine::set_config("network/latency-factor:2");
  auto* zone = sg4::create_empty_zone("zone");
  std::vector<sg4::Host*> clients;
  std::vector<sg4::Host*> servers;
  for (int i = 0; i < NODES; i++) {
    clients.push_back(zone->create_host("client" + std::to_string(i), 1e9));
    servers.push_back(zone->create_host("server" + std::to_string(i), 1e9));
  }
  zone->seal();

  if (idiom == "messages") {
    messages(clients, servers, n);
  } else if (idiom == "lean") {
    lean(clients, servers, n);
  } else {
    std::fprintf(stderr, "golden_simgrid: unknown idiom %s: expected messages or lean\n", idiom.c_str());
    return 2;
  }
  engine.run();

  const auto taken     = std::chrono::steady_clock::now() - started;
  const double elapsed = std::chrono::duration<double, std::nano>(taken).count();
  const long events    = NODES * n * 4;
  std::printf("golden: last_reply=%.6f response_sum=%.6f events=%ld ns_per_event=%.1f\n", totals.last_reply,
              totals.response_sum, events, elapsed / static_cast<double>(events));
  return 0;
}

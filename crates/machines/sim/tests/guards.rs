//! Error reports of runs that cannot continue, and support of foreign wakers.

mod common;

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use common::{simulation, starfish, until};
use machine::{Condition, Error, Machine, Net, Work};

#[test]
fn the_error_of_a_stalled_run_names_all_waiting_tasks() {
    let simulation = simulation(&starfish(&[]));
    for node in &simulation.nodes()[..2] {
        let machine = node.clone();
        node.spawn("listener", async move { machine.net().receive().await.map(|_| ()) });
    }
    let machine = simulation.node(5).clone();
    let error = simulation.run(async move { machine.net().receive().await }).expect_err("a stall");
    let text = error.to_string();
    for part in ["stalled", "0.000000 s", "listener on node 0", "listener on node 1"] {
        assert!(text.contains(part), "{text:?} should say {part:?}");
    }
}

#[test]
fn an_endless_task_is_stopped_and_named() {
    let simulation = simulation(&starfish(&[]));
    let machine = simulation.node(2).clone();
    simulation.node(2).spawn("restless", async move {
        until(&machine, 1000).await;
        std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        })
        .await;
        Ok(())
    });
    let text = simulation.run_until_idle().expect_err("a stop").to_string();
    assert!(text.contains("restless on node 2") && text.contains("0.000001 s"), "{text}");
}

#[test]
fn many_tasks_of_one_instant_are_not_mistaken_for_an_endless_task() {
    const PARENTS: u32 = 12;
    const CHILDREN: u32 = 95_000;
    let simulation = simulation(&starfish(&[]));
    let machine = simulation.node(2).clone();
    let ended = simulation.run(async move {
        let mut ended = 0;
        let (parent_ended, child_ended) = (Rc::new(Condition::new()), Rc::new(Condition::new()));
        for _ in 0..PARENTS {
            let (parent, waker) = (machine.clone(), parent_ended.clone());
            let child_ended = child_ended.clone();
            machine.spawn("parent", async move {
                for _ in 0..CHILDREN {
                    let waker = child_ended.clone();
                    parent.spawn("child", async move {
                        waker.wake_one();
                        Ok(())
                    });
                    child_ended.wait().await;
                }
                waker.wake_one();
                Ok(())
            });
            parent_ended.wait().await;
            ended += 1;
        }
        ended
    });
    assert_eq!(ended.expect("time need not pass"), PARENTS);
}

/// If requests take no time, one task may serve any number of others in an instant.
#[test]
fn a_task_woken_by_many_others_is_not_mistaken_for_an_endless_task() {
    const CLIENTS: u32 = 500_000;
    let simulation = simulation(&starfish(&[]));
    let machine = simulation.node(2).clone();
    let served = simulation.run(async move {
        let (asked, answered) = (Rc::new(Condition::new()), Rc::new(Condition::new()));
        for _ in 0..CLIENTS {
            let (ask, answer) = (asked.clone(), answered.clone());
            machine.spawn("client", async move {
                ask.wake_one();
                answer.wait().await;
                Ok(())
            });
            asked.wait().await;
            answered.wake_one();
        }
        CLIENTS
    });
    assert_eq!(served.expect("time need not pass"), CLIENTS);
}

#[test]
fn tasks_that_keep_waking_each_other_are_stopped() {
    let simulation = simulation(&starfish(&[]));
    let conditions = [Rc::new(Condition::new()), Rc::new(Condition::new())];
    for own in 0..2 {
        let [own, other] = [own, 1 - own].map(|index: usize| conditions[index].clone());
        simulation.node(2).spawn("restless", async move {
            loop {
                other.wake_one();
                own.wait().await;
            }
        });
    }
    let text = simulation.run_until_idle().expect_err("a stop").to_string();
    assert!(text.contains("restless on node 2"), "{text}");
}

#[test]
fn the_error_of_a_detached_task_names_task_and_node() {
    let simulation = simulation(&starfish(&[]));
    let machine = simulation.node(17).clone();
    simulation.node(17).spawn("fragile", async move {
        until(&machine, 5).await;
        Err(Error::Closed.into())
    });
    let error = simulation.run(std::future::pending::<()>()).expect_err("a failure");
    assert_eq!(error.to_string(), "fragile on node 11: the network is closed");
}

/// Waker as combinators make it: counts wakes, and passes them on.
struct Counting {
    inner: Waker,
    wakes: AtomicU32,
}

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.inner.wake_by_ref();
    }
}

/// Polls `future` with a separate waker; returns the final number of wakes.
async fn counted(future: impl Future) -> u32 {
    let mut future = pin!(future);
    let mut counting: Option<Arc<Counting>> = None;
    std::future::poll_fn(|context| {
        let counting = counting.get_or_insert_with(|| {
            Arc::new(Counting { inner: context.waker().clone(), wakes: AtomicU32::new(0) })
        });
        let waker = Waker::from(counting.clone());
        let mut inner = Context::from_waker(&waker);
        future.as_mut().poll(&mut inner).map(|_| counting.wakes.load(Ordering::Relaxed))
    })
    .await
}

/// Runs both to completion.
async fn both(first: impl Future<Output = u32>, second: impl Future<Output = u32>) -> (u32, u32) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut one, mut two) = (None, None);
    std::future::poll_fn(|context| {
        if one.is_none()
            && let Poll::Ready(value) = first.as_mut().poll(context)
        {
            one = Some(value);
        }
        if two.is_none()
            && let Poll::Ready(value) = second.as_mut().poll(context)
        {
            two = Some(value);
        }
        one.zip(two).map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

#[test]
fn waits_inside_combinators_are_woken_through_their_wakers() {
    let simulation = simulation(&starfish(&[]));
    let machine = simulation.node(0).clone();
    let condition = Condition::new();
    let wakes = simulation.run(async {
        let slept = both(counted(until(&machine, 100)), counted(until(&machine, 50))).await;
        let worked = both(
            counted(machine.compute(Work::CallMemput)),
            counted(machine.compute(Work::HandleMemput { bytes: 8 })),
        );
        let worked = worked.await;
        let talked = both(
            counted(machine.net().receive()),
            counted(machine.net().send(machine.node(), Default::default())),
        );
        let talked = talked.await;
        let woken = both(counted(condition.wait()), async {
            condition.wake_one();
            0
        });
        (slept, worked, talked, woken.await)
    });
    assert_eq!(wakes, Ok(((1, 1), (1, 1), (1, 0), (1, 0))));
}

#[test]
fn a_waker_can_outlive_its_task_its_run_and_its_simulation() {
    let kept = std::rc::Rc::new(std::cell::RefCell::new(Vec::<Waker>::new()));
    let first = simulation(&starfish(&[]));
    let kept_by_task = kept.clone();
    first.node(0).spawn(
        "short-lived",
        std::future::poll_fn(move |context| {
            kept_by_task.borrow_mut().push(context.waker().clone());
            Poll::Ready(Ok(()))
        }),
    );
    first.run_until_idle().expect("nothing fails");
    let wake_all = || kept.borrow().iter().for_each(Waker::wake_by_ref);
    wake_all();
    let second = simulation(&starfish(&[]));
    second.run(async { wake_all() }).expect("nothing fails");
    first.run_until_idle().expect("nothing fails");
    drop(first);
    wake_all();
    let wakers = std::mem::take(&mut *kept.borrow_mut());
    std::thread::spawn(move || wakers.iter().for_each(Waker::wake_by_ref)).join().expect("no panic");
}

#[test]
fn a_simulation_drops_its_tasks_when_it_is_dropped() {
    struct OnDrop(std::rc::Rc<std::cell::Cell<u32>>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let drops = std::rc::Rc::new(std::cell::Cell::new(0));
    let simulation = simulation(&starfish(&[]));
    for _ in 0..3 {
        let (machine, guard) = (simulation.node(0).clone(), OnDrop(drops.clone()));
        simulation.node(0).spawn("listener", async move {
            let _guard = guard;
            machine.net().receive().await.map(|_| ())
        });
    }
    simulation.run_until_idle().expect("nothing fails");
    drop(simulation);
    assert_eq!(drops.get(), 3);
}

#[test]
fn one_simulation_can_run_inside_another() {
    let (outer, inner) = (simulation(&starfish(&[])), simulation(&starfish(&[])));
    let machine = outer.node(0).clone();
    let inner_machine = inner.node(0).clone();
    let result = outer.run(async {
        until(&machine, 10).await;
        let inside = inner.run(async {
            until(&inner_machine, 1000).await;
            inner_machine.now().as_nanos()
        });
        until(&machine, 20).await;
        (inside, machine.now().as_nanos())
    });
    assert_eq!(result, Ok((Ok(1000), 20)));
}

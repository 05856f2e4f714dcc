//! Streams and events.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use device_arena::Error;
use device_arena::backend::{AnyBackend, Backend, Event, Stream, Vendor};

use crate::Subject;

const SOON: Duration = Duration::from_millis(30);

fn stream(subject: &Subject) -> Stream {
    subject.backend.create_stream(0).unwrap()
}

/// Work that waits until the sender is used or dropped.
fn gate(backend: &AnyBackend, stream: &Stream) -> (mpsc::Sender<()>, Event) {
    let (open, opened) = mpsc::channel();
    let event = backend
        .enqueue(
            stream,
            Box::new(move || {
                let _ = opened.recv();
            }),
        )
        .unwrap();
    (open, event)
}

fn finish(backend: &AnyBackend, stream: &Stream) {
    let event = backend.record(stream).unwrap();
    assert!(backend.wait(&event, None).unwrap());
}

pub(crate) fn work_runs_in_order(subject: &Subject) {
    let stream = stream(subject);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for index in 0..100 {
        let seen = Arc::clone(&seen);
        subject.backend.enqueue(&stream, Box::new(move || seen.lock().unwrap().push(index))).unwrap();
    }
    finish(&subject.backend, &stream);
    assert_eq!(*seen.lock().unwrap(), (0..100).collect::<Vec<_>>());
}

pub(crate) fn an_event_passes_after_the_work_before_it(subject: &Subject) {
    let stream = stream(subject);
    let idle = subject.backend.record(&stream).unwrap();
    if subject.backend.vendor() == Vendor::Host {
        assert!(subject.backend.has_passed(&idle).unwrap(), "nothing is ahead of it");
    }
    assert!(subject.backend.wait(&idle, None).unwrap() && subject.backend.is_idle(&stream).unwrap());
    let (open, behind_work) = gate(&subject.backend, &stream);
    let recorded = subject.backend.record(&stream).unwrap();
    assert!(!subject.backend.has_passed(&behind_work).unwrap());
    assert!(!subject.backend.has_passed(&recorded).unwrap() && !subject.backend.is_idle(&stream).unwrap());
    drop(open);
    assert!(subject.backend.wait(&recorded, None).unwrap());
    assert!(subject.backend.has_passed(&behind_work).unwrap());
}

pub(crate) fn a_stream_waits_for_another_without_the_host(subject: &Subject) {
    let (first, second) = (stream(subject), stream(subject));
    let (open, event) = gate(&subject.backend, &first);
    subject.backend.stream_wait(&second, &event).unwrap();
    let ran = Arc::new(AtomicBool::new(false));
    let runs = Arc::clone(&ran);
    let behind =
        subject.backend.enqueue(&second, Box::new(move || runs.store(true, Ordering::SeqCst))).unwrap();
    assert!(!subject.backend.wait(&behind, Some(SOON)).unwrap());
    assert!(!ran.load(Ordering::SeqCst));
    drop(open);
    assert!(subject.backend.wait(&behind, None).unwrap());
    assert!(ran.load(Ordering::SeqCst));
}

pub(crate) fn a_wait_times_out(subject: &Subject) {
    let stream = stream(subject);
    let (open, event) = gate(&subject.backend, &stream);
    let start = Instant::now();
    assert!(!subject.backend.wait(&event, Some(SOON)).unwrap());
    assert!(start.elapsed() >= SOON);
    assert!(!subject.backend.wait(&event, Some(Duration::ZERO)).unwrap());
    drop(open);
    assert!(subject.backend.wait(&event, Some(Duration::MAX)).unwrap());
}

pub(crate) fn a_wait_on_its_own_worker_is_refused(subject: &Subject) {
    assert!(subject.backend.can_wait());
    let stream = Arc::new(stream(subject));
    let (backend, own) = (subject.backend.clone(), Arc::clone(&stream));
    let (answer, answers) = mpsc::channel();
    let work = move || {
        assert!(!backend.can_wait());
        // A device's driver can't even be asked for the event there.
        answer.send(backend.record(&own).and_then(|behind| backend.wait(&behind, None))).unwrap();
    };
    subject.backend.enqueue(&stream, Box::new(work)).unwrap();
    let refused = answers.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(matches!(refused, Err(Error::WouldDeadlock { .. })));
    finish(&subject.backend, &stream);
}

pub(crate) fn a_notice_comes_once_the_event_has_passed(subject: &Subject) {
    let stream = stream(subject);
    let (open, event) = gate(&subject.backend, &stream);
    let notices = Arc::new(AtomicUsize::new(0));
    let notice = || {
        let notices = Arc::clone(&notices);
        Box::new(move || {
            notices.fetch_add(1, Ordering::SeqCst);
        })
    };
    subject.backend.notify(&event, notice()).unwrap();
    assert_eq!(notices.load(Ordering::SeqCst), 0);
    drop(open);
    finish(&subject.backend, &stream);
    // A device's notice comes from a thread that looks at the event now and then.
    let deadline = Instant::now() + Duration::from_secs(10);
    while notices.load(Ordering::SeqCst) == 0 && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(notices.load(Ordering::SeqCst), 1);
    subject.backend.notify(&event, notice()).unwrap();
    assert_eq!(notices.load(Ordering::SeqCst), 2, "at once where it has passed");
}

pub(crate) fn work_that_panics_does_not_end_the_stream(subject: &Subject) {
    let stream = stream(subject);
    let event = subject.backend.enqueue(&stream, Box::new(|| panic!("on purpose"))).unwrap();
    assert!(subject.backend.wait(&event, None).unwrap());
    let (ran, runs) = mpsc::channel();
    subject.backend.enqueue(&stream, Box::new(move || ran.send(()).unwrap())).unwrap();
    runs.recv_timeout(Duration::from_secs(10)).unwrap();
}

pub(crate) fn dropping_a_stream_waits_for_its_work(subject: &Subject) {
    let stream = stream(subject);
    let ran = Arc::new(AtomicBool::new(false));
    let runs = Arc::clone(&ran);
    let work = move || {
        std::thread::sleep(SOON);
        runs.store(true, Ordering::SeqCst);
    };
    subject.backend.enqueue(&stream, Box::new(work)).unwrap();
    drop(stream);
    assert!(ran.load(Ordering::SeqCst));
}

pub(crate) fn an_adopted_stream_is_the_same_queue(subject: &Subject) {
    // SAFETY: null is refused, not used.
    let refused = unsafe { subject.backend.adopt_stream(std::ptr::null_mut(), Box::new(())) };
    assert!(matches!(refused.unwrap_err().error, Error::WrongVendor { .. }));
    let owner = Arc::new(stream(subject));
    let raw = subject.backend.raw_stream(&owner).unwrap();
    // SAFETY: the stream lives as long as the keep-alive.
    let adopted = unsafe { subject.backend.adopt_stream(raw, Box::new(Arc::clone(&owner))) }.unwrap();
    let (open, event) = gate(&subject.backend, &owner);
    let behind = subject.backend.record(&adopted).unwrap();
    assert!(!subject.backend.has_passed(&behind).unwrap());
    drop(open);
    assert!(subject.backend.wait(&behind, None).unwrap());
    assert!(subject.backend.has_passed(&event).unwrap());
    drop(owner);
    finish(&subject.backend, &adopted);
    drop(adopted);
}

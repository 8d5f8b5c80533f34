//! The loop between terminal and model: waits, passes events on, draws. Decides nothing.

use std::{io, sync::mpsc::Receiver};

use super::{
    keys::Keys,
    model::{Choice, DetailRequest, Model, News, PartId, PickerEffect, PickerPlace},
    screen::{Screen, Waker, Woken, end_by},
};
use crate::{crash, process::Tty, ui::Style};

/// The result of the picker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing to do.
    Left,
    /// The choice for a turn.
    Do(PickerPlace, Choice),
    /// What was chosen among the files of a plan.
    DoPart(PickerPlace, PartId),
    /// The thread that computes results is gone.
    Lost,
}

/// The terminal, and the state shown on it.
pub struct Picker {
    screen: Screen,
    model: Model,
}

impl Picker {
    /// Takes the terminal over. The waker is for the thread that sends news.
    ///
    /// # Errors
    ///
    /// Fails if the terminal does not let us.
    pub fn open(
        tty: Tty,
        model: Model,
        style: Style,
        may_suspend: bool,
    ) -> io::Result<(Self, Waker)> {
        let (screen, waker) = Screen::open(tty, style, may_suspend)?;
        Ok((Self { screen, model }, waker))
    }

    /// Runs until the user has chosen. The terminal is restored when it returns.
    ///
    /// # Errors
    ///
    /// Fails if the terminal can no longer be read or written.
    pub fn run(self, wish: &dyn Fn(DetailRequest), news: &Receiver<News>) -> io::Result<End> {
        let Self { mut screen, mut model } = self;
        let end = choose(&mut screen, &mut model, wish, news);
        drop(screen);
        match end? {
            Ended::By(signal) => {
                end_by(signal)?;
                Ok(End::Left)
            }
            Ended::So(end) => Ok(end),
        }
    }
}

enum Ended {
    So(End),
    By(i32),
}

fn choose(
    screen: &mut Screen,
    model: &mut Model,
    wish: &dyn Fn(DetailRequest),
    news: &Receiver<News>,
) -> io::Result<Ended> {
    let mut keys = Keys::default();
    if let Some(chosen) = model.chosen() {
        wish(DetailRequest::Look(chosen));
    }
    loop {
        for news in news.try_iter() {
            model.learn(news);
        }
        screen.draw(model)?;
        crash::bug("picker");
        let woken = screen.wait(keys.is_half().then_some(Keys::PATIENCE))?;
        let mut settled = None;
        match woken {
            Woken::Keys(bytes) => keys.push(&bytes),
            Woken::Quiet => settled = keys.settle(),
            Woken::Else => (),
            Woken::HungUp => return Ok(Ended::So(End::Left)),
            Woken::Lost => return Ok(Ended::So(End::Lost)),
            Woken::End(signal) => return Ok(Ended::By(signal)),
        }
        // Handles all pending keys before drawing; otherwise a slow line would fall behind.
        while let Some(key) = settled.take().or_else(|| keys.next()) {
            match model.press(key) {
                PickerEffect::Nothing => (),
                PickerEffect::Wish(wished) => wish(wished),
                PickerEffect::Do(row, choice) => {
                    return Ok(Ended::So(End::Do(model.place(row), choice)));
                }
                PickerEffect::DoPart(part) => {
                    return Ok(Ended::So(End::DoPart(model.place(part.turn), part)));
                }
                PickerEffect::Leave => return Ok(Ended::So(End::Left)),
                PickerEffect::Suspend => screen.suspend()?,
                PickerEffect::Redraw => screen.redraw()?,
            }
        }
    }
}
